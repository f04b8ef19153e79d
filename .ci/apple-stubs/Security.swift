// Module Security, as far as the tests use it. Facts: SecImportExport.h, SecIdentity.h, SecProtocolObject.h,
// SecProtocolOptions.h and SecTrust.h of Apple's SDK as Swift imports them; certain.

import CoreFoundation
import Foundation

public typealias CFData = NSData
public typealias CFDictionary = NSDictionary
public typealias OSStatus = Int32
public final class SecIdentity {}
public final class SecTrust {}
public protocol OS_sec_object: NSObjectProtocol {}
public protocol OS_sec_identity: OS_sec_object {}
public protocol OS_sec_protocol_options: OS_sec_object {}
public typealias sec_identity_t = any OS_sec_identity
public typealias sec_protocol_options_t = any OS_sec_protocol_options

public var kSecImportExportPassphrase: CFString { fatalError() }
public var kSecImportItemIdentity: CFString { fatalError() }
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
public var kSecImportToMemoryOnly: CFString { fatalError() }
public func SecPKCS12Import(
    _ data: CFData, _ options: CFDictionary, _ items: UnsafeMutablePointer<CFArray?>
) -> OSStatus { 0 }
public func sec_identity_create(_ identity: SecIdentity) -> sec_identity_t? { nil }
public func sec_protocol_options_set_local_identity(_ options: sec_protocol_options_t, _ identity: sec_identity_t) {}

extension URLProtectionSpace {
    public var serverTrust: SecTrust? { nil }
}
extension URLCredential {
    public convenience init(trust: SecTrust) { fatalError() }
}
