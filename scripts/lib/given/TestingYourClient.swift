import WebServiceCore
import WebServiceMocking

let session = MockSession()
let service = WebService(baseURLString: "https://mock.test")
