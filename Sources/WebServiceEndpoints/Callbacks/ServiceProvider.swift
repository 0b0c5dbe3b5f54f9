public import WebServiceCore

/// A facade that hides a service and exposes selected requests for one purpose.
///
/// ```swift
/// struct SiteProvider: ServiceProvider {
///     private let service: WebService
///
///     init(service: WebService) { self.service = service }
///
///     func page(of site: Site) -> TypedTask<String> {
///         service.perform(PageRequest(site: site.rawValue))
///     }
/// }
/// let provider = service.createProvider(SiteProvider.self)
/// ```
/// A provider retains its service.
public protocol ServiceProvider: Sendable {
    /// Creates a provider for a service.
    init(service: WebService)
}

extension WebService {
    /// Creates a provider for this service.
    public func createProvider<Provider: ServiceProvider>(_ type: Provider.Type = Provider.self) -> Provider {
        Provider(service: self)
    }
}
