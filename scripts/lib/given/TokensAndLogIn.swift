import Foundation

let issuer = URL(fileURLWithPath: "/")
