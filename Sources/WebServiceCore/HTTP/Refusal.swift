/// The cause of an error with which a request was refused before it was sent.
///
/// If the request repeats an earlier one, the result is that of the earlier one.
package protocol Refusal: Error {}
