/// What belongs to one account and ends with it: services with their clones, and other members.
package final class AccountScope: Sendable {
    private struct WeakMember: Sendable {
        weak var member: (any AccountMember)?
    }

    private struct State {
        var members: [WeakMember] = []
        /// The number of members at which those that were deallocated are removed.
        var limit = 16
        var isEnded = false
    }

    private let state = Mutex(State())
    private let work = WorkCount()

    package init() {}

    package var isEnded: Bool { state.withLock { $0.isEnded } }

    /// Adds a member, without retaining it.
    ///
    /// - Returns: `false` if the account has ended.
    @discardableResult
    package func add(_ member: any AccountMember) -> Bool {
        state.withLock { state in
            if state.members.count >= state.limit {
                state.members.removeAll { $0.member == nil }
                state.limit = max(16, state.members.count * 2)
            }
            state.members.append(WeakMember(member: member))
            return !state.isEnded
        }
    }

    /// Begins work that sends a request or may change files of the account; `nil` if the account
    /// has ended.
    package func begin() -> WorkCount.Token? { state.withLock { $0.isEnded ? nil : work.begin() } }

    /// Refuses further work, and waits until all members have left and all work has ended.
    package func end() async {
        let members = state.withLock { state in
            state.isEnded = true
            return state.members
        }
        let present = members.compactMap(\.member)
        await withTaskGroup { group in
            for member in present { group.addTask { await member.leave() } }
        }
        while await !work.finish(within: .seconds(3_600)), !Task.isCancelled {}
        for member in present { await member.settle() }
    }
}

/// An object that belongs to an account.
package protocol AccountMember: AnyObject, Sendable {
    /// Ends the work of the object, after the account has refused further work.
    func leave() async

    /// Waits until the object sends no further byte. Called when all work has ended.
    func settle() async
}

extension AccountMember {
    package func settle() async {}
}

/// A session whose cancellations take effect later.
package protocol SettlingSession: Session {
    /// Waits until the requests that were cancelled before are over, and send no further byte.
    func settle() async
}
