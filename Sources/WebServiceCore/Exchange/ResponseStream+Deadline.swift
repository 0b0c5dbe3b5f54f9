extension ResponseStream: AlarmTarget {
    /// Ends the body at the deadline.
    package func ring() {
        let deadline = original.options.requestDeadline
        let error = WebServiceError(.deadline, "the exchange exceeded its deadline of \(deadline)", request: original)
        fail(error, discardsBytes: false)
    }
}
