public import WebServiceCore

/// A facade of a service for one purpose. It hides the service and exposes selected requests.
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
