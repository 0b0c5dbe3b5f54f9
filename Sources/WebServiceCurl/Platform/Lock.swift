import Synchronization
import WebServiceCore

#if WEBSERVICE_THREAD_SANITIZER
typealias Lock<Value: ~Copyable> = WebServiceCore.Mutex<Value>
#else
/// The lock of this module.
///
/// This lock needs no wrapper, which costs time in builds without optimization.
typealias Lock<Value: ~Copyable> = Synchronization.Mutex<Value>
#endif
