nonisolated(unsafe) var size = 0
nonisolated(unsafe) var ids: [String] = []
