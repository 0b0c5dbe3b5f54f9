import Foundation
import Testing
package import WebServiceCore

/// An observer that records every event as a line of text.
package final class EventRecorder: Observer {
    package let events = Collected<ExchangeEvent>()
    package let streamedBodyLimit: Int
    private let action: @Sendable (ExchangeEvent) -> Void

    /// - Parameter action: Called with each event after it was recorded.
    package init(streamedBodyLimit: Int = 0, _ action: @escaping @Sendable (ExchangeEvent) -> Void = { _ in }) {
        self.streamedBodyLimit = streamedBodyLimit
        self.action = action
    }

    package func observe(_ event: ExchangeEvent) {
        events.add(event)
        action(event)
    }

    /// The exchanges in the order in which their first events were delivered.
    package var exchanges: [ObservedExchange] {
        var ids: Set<UInt64> = []
        return events.values.map(\.exchange).filter { ids.insert($0.id).inserted }
    }

    /// The events of an exchange, by the index of the exchange.
    package func lines(_ index: Int = 0) -> [String] {
        let exchanges = exchanges
        guard exchanges.indices.contains(index) else { return [] }
        return events.values.filter { $0.exchange.id == exchanges[index].id }.map(Self.line)
    }

    /// Waits until an exchange has ended, and returns its events.
    package func ended(_ index: Int = 0) async -> [String] {
        await eventually("exchange \(index) ends") { self.lines(index).contains { $0.hasPrefix("ended") } }
        return lines(index)
    }

    /// Returns a description of an event without the age of a stored value.
    package static func line(_ event: ExchangeEvent) -> String {
        switch event.kind {
        case .created: "created \(event.exchange.name)"
        case .attemptStarted(let number, let request): "attempt \(number) started \(request)"
        case .interimHeadReceived(let head): "interim \(head.status)"
        case .headReceived(let head): "head \(head.status)"
        case .bodyReceived(let bytes): "bytes \(bytes.count)"
        case .message(let message, let isReceived): "message \(isReceived ? "received" : "sent") \(message.byteCount)"
        case .attemptEnded(let number, let result, _): "attempt \(number) ended \(text(result))"
        case .recorded(let entry) where entry.detail.hasPrefix("read, "): "\(entry.kind): read"
        case .recorded(let entry): "\(entry.kind)\(entry.detail.isEmpty ? "" : ": \(entry.detail)")"
        case .ended(let summary): "ended \(text(summary.result))"
        }
    }

    private static func text(_ result: Result<Response, any Error>) -> String {
        switch result {
        case .success(let response): "\(response.status) \(response.source)"
        case .failure(let error as URLError): "URLError \(error.code.rawValue)"
        case .failure(let error): (error as? WebServiceError)?.code.description ?? "\(type(of: error))"
        }
    }
}
