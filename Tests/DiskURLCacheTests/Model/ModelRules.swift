import Foundation

extension ReferenceModel {
    /// Which answers are allowed.
    enum Rules {
        /// Nil where the answer is allowed.
        static func problem(with answer: ModelAnswer, of load: ModelLoad, in state: State) -> String? {
            guard load.method == "GET" || load.method == "HEAD" else { return nil }
            if answer.status >= 500 { return state.mayFail(load) ? nil : "the origin did not answer so" }
            if answer.path != load.path {
                if let problem = redirection(to: answer.path, of: load, in: state) { return problem }
                return problem(with: answer, of: load.redirected(to: answer.path), in: state)
            }
            // A redirect is followed by loads, and found by lookups.
            let isRedirect = (300..<400).contains(answer.status) && load.path == ModelOrigin.redirecting
            guard answer.status == 200 || isRedirect && load.isLookup else { return "no such status was sent" }
            guard let check = answer.check.flatMap({ state.items[$0] }) else { return "nobody sent this head" }
            if load.method == "HEAD" {
                guard answer.body.isEmpty else { return "HEAD has no body" }
                guard answer.token != nil else {
                    return check.born > load.begin ? nil : "the answer to another HEAD was stored"
                }
            }
            guard let number = answer.token, let item = state.items[number] else { return "nobody sent this head" }
            if load.method == "GET", answer.body != item.body { return "head and body are not of one response" }
            return identity(of: item, checkedBy: check, load) ?? reuse(of: item, checkedBy: check, load, state)
        }

        /// Whether an answer of the origin that leads to the path came for this load, or may be used from the store.
        private static func redirection(to path: String, of load: ModelLoad, in state: State) -> String? {
            let redirects = state.items.values.filter {
                $0.request.path == load.path && $0.target == path && $0.request.user == load.request.user
            }
            var problem: String? = "no answer leads from \(load.path) to \(path)"
            for redirect in redirects {
                problem = reuse(of: redirect, checkedBy: redirect, load, state)
                if problem == nil { return nil }
            }
            return problem
        }

        /// Another key's or another variant's.
        private static func identity(of item: ModelItem, checkedBy check: ModelItem, _ load: ModelLoad) -> String? {
            for item in [item, check] {
                if item.request.path != load.path { return "item \(item.number) is of another URL" }
                if item.request.user != load.request.user { return "item \(item.number) is another user's" }
                if item.varies, item.request.language != load.request.language {
                    return "item \(item.number) is in another language"
                }
            }
            // RFC 9111 §4.3.5: a HEAD without validators is about what has the same length.
            let isHeadOf = check.kind == .head && check.tag == item.tag && check.length == item.length
            if check.number != item.number, !isHeadOf, check.tag == nil || check.tag != item.tag {
                return "exchange \(check.number) was not about item \(item.number)"
            }
            return nil
        }

        /// Whether the item may answer from the store, or from another load's exchange.
        private static func reuse(
            of item: ModelItem, checkedBy check: ModelItem, _ load: ModelLoad, _ state: State
        ) -> String? {
            // From the origin, for this load or for one that began later.
            if item.born > load.begin { return nil }
            if item.control.noStore { return "no-store is not stored" }
            // A response that a second process removes while this process stores it is removed when the store returns;
            // when a refresh ends is not known.
            let asker = item.asker.flatMap { state.loads[$0] }
            let isStored = asker.map { $0.end < load.begin && item.born < $0.end } ?? true
            for removal in state.removals
            where removal.end < load.begin && removal.concerns(item)
                && (removal.process == item.process || isStored)
            {
                return "item \(item.number) was removed (\(removal.scope)) by process \(removal.process) at "
                    + "\(removal.begin) to \(removal.end), before the load began at \(load.begin)"
            }
            let newer = state.items.values.first { isReplaced(item, checkedBy: check, by: $0, load, state) }
            if let newer {
                return
                    "item \(newer.number) took its place at \(newer.visible ?? 0), before the load began at \(load.begin)"
            }
            if load.isLookup || check.born > load.begin { return nil }
            return mark(of: check, load, state) ?? freshness(of: check, load)
        }

        /// Whether the other item was certainly asked for later, and stored before the load began.
        private static func isReplaced(
            _ item: ModelItem, checkedBy check: ModelItem, by other: ModelItem, _ load: ModelLoad, _ state: State
        ) -> Bool {
            guard other.number != item.number, [.whole, .byHand, .redirect].contains(other.kind), other.replaces(item),
                let visible = other.visible, visible < load.begin,
                // What was confirmed since counts as asked for then.
                other.askerBegan > max(item.born, check.born), other.process == load.process
            else { return false }
            // What was under way during a removal or a mark is not stored, and the older item may not be concerned.
            let isInvalidated = state.invalidations.values.contains {
                $0.path == other.request.path && $0.time > other.askerBegan
            }
            if isInvalidated || (state.removals + state.marks).contains(where: { $0.mayKeepOut(other) }) {
                return false
            }
            // RFC 9111 §4.3.5: a HEAD that is not about the newer item removes it.
            let isDenied = state.items.values.contains {
                $0.kind == .head && $0.born > other.born && $0.request.path == other.request.path
                    && $0.request.user == other.request.user && ($0.tag != other.tag || $0.length != other.length)
            }
            if isDenied { return false }
            // What another process stores is seen on disk only; of two calls that overlap either may be the later one.
            if item.process != other.process || item.kind == .byHand,
                item.visible.map({ $0 < other.askerBegan }) != true
            {
                return false
            }
            // Which of two loads asked later is known as long as the newer answer is: not where memory forgets, or is
            // small.
            if state.forgets, item.visible.map({ $0 < other.askerBegan }) != true { return false }
            // An answer that is not stored removes what its load found stored: what another process holds in its buffer
            // is not found. A temporary redirect says nothing about what is stored. A redirect is stored as long as it
            // can be fresh.
            if other.control.noStore || other.kind == .redirect && other.control.isNeverFresh,
                other.isTemporary || item.process != other.process
                    || item.visible.map({ $0 < other.askerBegan }) != true
            {
                return false
            }
            // What was not on disk when the process was killed is lost.
            for kill in state.kills where visible < kill {
                guard state.flushes.contains(where: { $0.lowerBound > visible && $0.upperBound < kill }) else {
                    return false
                }
            }
            return true
        }

        /// A response that was marked before the load began is validated, as one whose lifetime is over.
        private static func mark(of check: ModelItem, _ load: ModelLoad, _ state: State) -> String? {
            guard load.policy == .useProtocol, check.control.staleWhileRevalidate == 0 else { return nil }
            let mark = state.marks.first { $0.end < load.begin && $0.concerns(check) && check.process == $0.process }
            return mark.map { "exchange \(check.number) was marked as stale at \($0.begin) to \($0.end)" }
        }

        private static func freshness(of check: ModelItem, _ load: ModelLoad) -> String? {
            switch load.policy {
            case .elseLoad, .dontLoad: return nil
            case .reload, .revalidate: return "\(load.policy) asks the origin"
            case .useProtocol: break
            }
            if check.control.noCache { return "no-cache is not reused without a question" }
            let age = load.beginSeconds - check.bornSeconds
            let bound = check.control.maxAge + check.control.staleWhileRevalidate
            // Ages are whole seconds.
            guard age <= Double(bound) + 1 else { return "\(Int(age)) s old, of \(bound) allowed" }
            return nil
        }
    }
}
