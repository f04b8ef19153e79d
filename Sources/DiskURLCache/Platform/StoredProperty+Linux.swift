#if canImport(FoundationNetworking)
    @_spi(Reflection) import Swift

    /// A stored property of one of Foundation's classes that has no public face, or an expensive one.
    ///
    /// It is read where the runtime says that it lies, as `Mirror` does, but its place is found once and no mirror is made for
    /// each object, which took a third of a hit. A later Foundation that lays the class out in another way gives another
    /// place, or none: what has no place is nil, and each use has a way to do without.
    struct StoredProperty: @unchecked Sendable {
        // @unchecked: a type and a number, both constant.
        private let type: Any.Type
        private let offset: Int

        /// Nil where the class has no stored property of that name.
        init?(_ name: String, of object: AnyClass) {
            var found: (type: Any.Type, offset: Int)?
            // 1: of a class. The constant for it is declared as a variable, which Swift 6 does not let us read.
            let classes = _EachFieldOptions(rawValue: 1)
            _ = _forEachField(of: object, options: classes) { field, offset, type, _ in
                guard String(cString: field) == name else { return true }
                found = (type, offset)
                return false
            }
            guard let found else { return nil }
            (type, offset) = found
        }

        /// The value, if the property is of exactly this type. The object must be of the class, or of one derived from it, and
        /// nobody may be writing to the property.
        @inline(__always)
        func value<Value>(of object: AnyObject, as wanted: Value.Type) -> Value? {
            withExtendedLifetime(object) { value(at: Self.address(of: object), as: wanted) }
        }

        /// The same where the object is known by its address.
        @inline(__always)
        func value<Value>(at object: UnsafeRawPointer, as wanted: Value.Type) -> Value? {
            guard type == wanted else { return nil }
            return place(at: object).assumingMemoryBound(to: Value.self).pointee
        }

        /// Puts a value in place of the one that is there, if the property is of exactly this type; false if not. The object
        /// must be of the class, or of one derived from it, and nobody else may have it yet.
        @inline(__always)
        func set<Value>(_ value: Value, in object: AnyObject) -> Bool {
            guard type == Value.self else { return false }
            withExtendedLifetime(object) {
                let place = UnsafeMutableRawPointer(mutating: place(at: Self.address(of: object)))
                place.assumingMemoryBound(to: Value.self).pointee = value
            }
            return true
        }

        /// The value, whatever its type is.
        func value(of object: AnyObject) -> Any {
            func read<Value>(_: Value.Type) -> Any {
                place(at: Self.address(of: object)).assumingMemoryBound(to: Value.self).pointee
            }
            return withExtendedLifetime(object) { _openExistential(type, do: read) }
        }

        /// The object that the value begins with, as a value does whose type is a class or a protocol of classes: a cast from
        /// Foundation's own protocol takes a thousand instructions.
        func object(in object: AnyObject) -> AnyObject? {
            withExtendedLifetime(object) {
                place(at: Self.address(of: object)).assumingMemoryBound(to: AnyObject?.self).pointee
            }
        }

        /// Whether the object's own address is what is there, as it is for a strong reference.
        func holds(_ value: AnyObject, in object: AnyObject) -> Bool {
            withExtendedLifetime(object) {
                place(at: Self.address(of: object)).load(as: UnsafeRawPointer?.self) == Self.address(of: value)
            }
        }

        /// The bytes of a value whose type need not be known: a value with the same bytes is the same value.
        struct Bytes: Sendable {
            fileprivate let offset: Int
            fileprivate let words: (UInt64, UInt64)

            /// Whether they are what an object of the same class has there.
            @inline(__always)
            func are(at object: UnsafeRawPointer) -> Bool {
                let place = object + offset
                return place.load(as: UInt64.self) == words.0
                    && place.load(fromByteOffset: 8, as: UInt64.self) == words.1
            }
        }

        /// Of the value, in bytes.
        var size: Int {
            func size<Value>(_: Value.Type) -> Int { MemoryLayout<Value>.size }
            return _openExistential(type, do: size)
        }

        /// Nil unless they are sixteen, as all are that are asked for.
        func bytes(at object: UnsafeRawPointer) -> Bytes? {
            guard size == 16 else { return nil }
            let place = place(at: object)
            return Bytes(
                offset: offset,
                words: (place.load(as: UInt64.self), place.load(fromByteOffset: 8, as: UInt64.self)))
        }

        @inline(__always)
        func place(at object: UnsafeRawPointer) -> UnsafeRawPointer { object + offset }

        @inline(__always)
        private static func address(of object: AnyObject) -> UnsafeRawPointer {
            UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
        }
    }
#endif
