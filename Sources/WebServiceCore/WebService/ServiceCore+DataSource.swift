/// The delegate of the data source.
extension ServiceCore {
    /// Returns the setup with the delegate of the data source, if there is no other delegate.
    func supplyingDelegate(_ setup: Setup) -> Setup {
        guard suppliesDelegate, setup.delegate == nil else { return setup }
        let source = WebService(borrowing: self) as? any ServicePassthroughDataSource
        guard let delegate = source?.servicePassthroughDelegate else { return setup }
        return setup.with { $0.delegate = DelegateReference(delegate) }
    }

    /// A Boolean value that indicates whether a module conforms `WebService` to the data source. It
    /// does not change while the program runs.
    static let hasDataSource = WebService.self is any ServicePassthroughDataSource.Type
}
