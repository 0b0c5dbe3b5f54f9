import Synchronization
import WebServiceCore

#if WEBSERVICE_THREAD_SANITIZER
typealias Lock<Value: ~Copyable> = WebServiceCore.Mutex<Value>
#else
/// The lock of this module.
///
/// It replaces the wrapper of `WebServiceCore`, which the compiler does not specialize in other
/// modules, because the wrapper is not public.
typealias Lock<Value: ~Copyable> = Synchronization.Mutex<Value>
#endif
