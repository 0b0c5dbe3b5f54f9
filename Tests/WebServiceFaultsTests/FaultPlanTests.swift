import TestSupport
import Testing
import WebServiceFaults

@Suite(.permit) struct FaultPlanTests {
    @Test("a plan is equal to the plan of its description")
    func description() {
        let plan: FaultPlan = "POST /orders#1=lost & GET /a=b#2+=refused"
        #expect(plan.steps == [.init("POST /orders#1", "lost"), .init("GET /a=b#2", "refused", isLasting: true)])
        #expect(plan.description == "POST /orders#1=lost & GET /a=b#2+=refused")
    }
}
