/// The service that executes the typed request of the current Swift task, for the defaults of
/// ``HTTPServiceRequest/decoder`` and ``ParameterizedRequest/encoder``.
enum PerformingService {
    @TaskLocal static var core: ServiceCore?
}
