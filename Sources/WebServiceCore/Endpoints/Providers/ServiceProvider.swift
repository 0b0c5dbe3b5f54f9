/// A part of a service for one purpose: it hides the service and shows what may be asked for.
///
/// ```swift
/// struct SiteProvider: ServiceProvider {
///     private let service: WebService
///
///     init(service: WebService) { self.service = service }
///
///     func page(of site: Site) -> TypedTask<String> { service.perform(PageRequest(site: site.rawValue)) }
/// }
/// let provider = service.createProvider(SiteProvider.self)
/// ```
/// A provider keeps its service alive.
public protocol ServiceProvider: Sendable {
    /// Makes a provider of a service.
    init(service: WebService)
}

extension WebService {
    /// Makes a provider of this service.
    public func createProvider<Provider: ServiceProvider>(_ type: Provider.Type = Provider.self) -> Provider {
        Provider(service: self)
    }
}
