import TestSupport
import Testing
import WebServiceFaults

@Suite("Corpus of faults", .permit) struct CorpusTests {
    @Test("Without faults, each client of the corpus keeps its promise", arguments: CorpusClient.all)
    func faultless(_ client: CorpusClient) async {
        let report = await client.run(Exploration(plans: []))
        #expect(report.failures.isEmpty, "\(client.name)")
    }

    @Test("The corpus has 40 faulty clients, of which 10 are by a reader, and 20 correct ones") func counts() {
        #expect(CorpusClient.faulty.count == 40)
        #expect(CorpusClient.faulty.count { $0.author == .reader } == 10)
        #expect(CorpusClient.correct.count == 20)
        #expect(CorpusClient.faulty.count { $0.faultCount == 2 } >= 5)
        #expect(Set(CorpusClient.all.map(\.name)).count == 60)
    }
}
