nonisolated(unsafe) var ids: [String] = []
