extension ResponseStream: AlarmTarget {
    /// Ends the body at the deadline.
    package func ring() {
        fail(WebServiceError.deadline(of: original), discardsBytes: false)
    }
}
