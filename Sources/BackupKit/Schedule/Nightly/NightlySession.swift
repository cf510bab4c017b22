import Glibc

/// A nightly run with all that is around it: one at a time, what it remembers, and who is told.
public struct NightlySession: Sendable {
    public var profile: String?
    public var stateFolder: String
    /// The file that all of this comes from, by its full path.
    public var configuration: String?
    /// Nil where no vault is named.
    public private(set) var route: RunState.Route?
    private var hasOwnState = false
    public var metricsFile: String?
    /// The profiles that write into the same file of metrics, this one or not; nil is that of a run without one.
    public var metricsProfiles: [String?] = []
    public var ping: Ping?
    public var clock = Clock.system
    /// What is wrong before a run begins.
    public var warnings: [Finding] = []
    /// Adds to the commands in a message what they need where somebody else types them.
    public var completed: @Sendable (String) -> String = { $0 }
    /// The number with which the command ends; nil is that all is fine.
    public var exitCode: @Sendable (ErrorCode?) -> Int32

    public init(profile: String?, stateFolder: String, exitCode: @escaping @Sendable (ErrorCode?) -> Int32) {
        (self.profile, self.stateFolder, self.exitCode) = (profile, stateFolder, exitCode)
    }

    /// The file with the state of these runs.
    public var statePath: String {
        RunState.path(in: stateFolder, profile: profile, hasOwnState ? route : nil)
    }

    /// Says what is backed up, and where. Each route has a state of its own: the configuration's has the plain file, wherever
    /// its store and vault lie today. So has the first of the others where there is no configuration.
    public mutating func follow(_ route: RunState.Route, isConfigured: Bool) {
        self.route = route
        hasOwnState = !isConfigured && !isPlainFile(for: route)
    }

    private func isPlainFile(for route: RunState.Route) -> Bool {
        let own = RunState.path(in: stateFolder, profile: profile, route)
        if configuration != nil || (try? FileStatus.ofTarget(own)) != nil { return false }
        guard let other = try? RunState.read(RunState.path(in: stateFolder, profile: profile)) else { return true }
        return other.configuration == nil && other.route ?? route == route
    }

    public var drillLog: DrillLog { DrillLog(DrillLog.path(in: stateFolder)) }

    public func state() throws -> RunState {
        var state = try remembered() ?? RunState()
        (state.configuration, state.route) = (configuration, route)
        return state
    }

    /// What earlier runs left behind; nil when there were none. What those of another configuration left is not for this
    /// one to go by: other things would be compared, and one would vouch for the other.
    public func remembered() throws -> RunState? {
        guard let state = try RunState.read(statePath) else { return nil }
        if configuration != nil, state.configuration == nil, state.route ?? route != route { return nil }
        if let other = state.configuration, let configuration, other != configuration,
            let status = try FileStatus.ofTarget(other), try FileStatus.ofTarget(configuration) != status
        {
            throw BackupError(
                .refused, "belongs to the runs of \(other)", at: statePath,
                remedy: "give each configuration a folder of its own, or make them profiles of one file; "
                    + "in a copy of the whole folder, remove this file")
        }
        return state
    }

    /// Whether the last good run is younger than so many seconds.
    public func isRecent(_ seconds: Int64) -> Bool {
        // When nobody can tell, a run too many is better than one too few.
        guard let last = try? state().success(at: clock.now()) else { return false }
        let age = last.age(at: clock.now())
        return age >= 0 && age < seconds
    }

    /// Runs a night. What goes wrong in it is in the report; what keeps it from beginning, or interrupts it, is thrown, and
    /// written down and told all the same. Given apart is what a watchdog did not hear.
    public func run(
        _ settings: NightlyRun.Settings, heard: @escaping (NightlyRun.Report.Line) -> Void = { _ in },
        lock: () throws -> FileHandle? = { nil }, vault open: () throws -> any NightlyVault
    ) throws -> (report: NightlyRun.Report, unheard: [Finding]) {
        let start = monotonicSeconds()
        let started = clock.now()
        // Another run that is at work writes down itself how it went.
        let held = Result { try lock() }
        if case .failure(let error as BackupError) = held, error.code == .locked { throw error }
        // A state that cannot be read must not keep a snapshot from being taken.
        var warnings = self.warnings
        var state = RunState()
        do { state = try self.state() } catch let error as BackupError where error.code != .refused {
            state.doubt = error.message
        }
        var (settings, drillLog) = (settings, drillLog)
        let noState = placeProblem()
        if let noState {
            // Nothing is removed. A drill that is not written down proves nothing to the next run.
            (state.doubt, settings.drillEvery, drillLog.isMissing) = (noState.message, nil, true)
        } else if let doubt = state.doubt {
            warnings.append(
                Finding(
                    .unreadable, .warning, statePath, doubt,
                    remedy: "nothing is removed this time; this run writes it again"))
        }
        // Who alarms when the last success is old would wait until then.
        state.passOverSuccesses(after: started)
        // What a watchdog does not hear is no fault of the backup.
        var unheard = tell(.start)
        func begun(_ code: ErrorCode?, _ snapshot: String?, _ message: String?) -> RunState.Run {
            .init(
                started: started, seconds: monotonicSeconds() - start, exitCode: exitCode(code), snapshot: snapshot,
                message: message.map(completed))
        }
        do {
            let folder = try held.get()
            defer { withExtendedLifetime(folder) {} }
            state.begun = started
            // One that is killed must not look like the one before it.
            if noState == nil { state.note(remember(state)) }
            var night = NightlyRun(
                try open(), settings, state: state, drillLog: drillLog, clock: clock, heard: heard,
                remember: { after in
                    state = after
                    // Only for a run that is killed; the end of this one writes it again, and says what is wrong.
                    return remember(after)
                })
            var random = SystemRandomNumberGenerator()
            var (report, after) = try night.run(random: &random)
            report.findings += warnings
            if let noState { report.errors.insert(noState, at: 0) }
            report.errors += note(begun(report.worst, report.snapshot, report.headline), &after, report.worst == nil)
            unheard += tell(report.worst == nil ? .success : .failure, completed(report.log))
            return (report, unheard)
        } catch {
            var problem = error as? BackupError ?? (error as? DamagedRow)?.problem ?? BackupError(.failed, "\(error)")
            if problem.code == .notFound, state.good != nil {
                // Advice for a vault that never was would put an empty one in its place.
                problem = problem.advising("earlier runs used it: look whether its disk is there")
            }
            // What went wrong first is what the caller must hear of.
            _ = note(begun(problem.code, nil, problem.description), &state, false)
            _ = tell(.failure, completed(problem.description))
            throw problem
        }
    }

    /// Writes the state of a run that has not ended, and returns what keeps it from that.
    private func remember(_ state: RunState) -> BackupError? {
        do { try state.write(statePath) } catch { return error as? BackupError }
        return nil
    }

    /// Writes down how a run went, for the next, for `schedule status` and for metrics. What cannot be written takes the
    /// success away, and nothing else.
    private func note(_ run: RunState.Run, _ state: inout RunState, _ isSuccess: Bool) -> [BackupError] {
        var errors: [BackupError] = []
        state.begun = nil
        let before = state
        state.lastRun = run
        if isSuccess { state.succeed(run) }
        do { try writeMetrics(state) } catch let error as BackupError { errors.append(error) } catch {}
        if isSuccess, let first = errors.first {
            state = before
            state.lastRun = .init(
                started: run.started, seconds: run.seconds, exitCode: exitCode(.failed), snapshot: run.snapshot,
                message: first.description)
        }
        do { try state.write(statePath) } catch let error as BackupError {
            // That the runs have no place for it is told already.
            if placeProblem() == nil { errors.append(error) }
        } catch {}
        return errors
    }

    /// What keeps the runs from writing down how they went. Makes the folder where it is not there.
    public func placeProblem() -> BackupError? {
        Self.problemOfState(in: stateFolder) { try Self.makePlaceOfState(stateFolder) }
    }

    /// The folder is there, and may be written to.
    private static func makePlaceOfState(_ folder: String) throws {
        try Directory.createAll(folder)
        try BackupError.mustBeWritable(folder)
        // Only the attempt tells whether there is room.
        guard let file = try FileHandle.ifNameless(in: folder, toldAs: folder) else { return }
        try [UInt8](repeating: 1, count: stateRoom).withUnsafeBytes { try file.write($0) }
        try file.sync()
    }

    /// More than a run writes down.
    private static let stateRoom = 16 << 10

    /// Throws where the runs have no folder for their state and cannot make one, or cannot write in it.
    public static func checkPlaceOfState(_ folder: String) throws {
        let problem = problemOfState(in: folder) {
            guard let missing = try Directory.missing(above: "\(folder)/run").last else {
                return try makePlaceOfState(folder)
            }
            // Only the attempt tells whether a folder can be made there.
            try Directory.create(missing)
            try Directory.removeTree(missing)
        }
        if let problem { throw BackupError(problem.code, problem.message, remedy: problem.remedy) }
    }

    /// Never with the code of what happened: to whoever reads exit codes, what is not there is the vault.
    private static func problemOfState(in folder: String, _ body: () throws -> Void) -> BackupError? {
        do { try body() } catch {
            let reason = (error as? BackupError)?.message ?? "\(error)"
            let isFull = (error as? BackupError)?.code == .destinationFull
            return BackupError(
                .failed, "the runs cannot keep their state in this folder: \(reason)", at: folder,
                remedy: isFull
                    ? "free some space on its disk, or let 'state' name a folder on another one"
                    : "let 'state' name a folder that can be made, or in which this user may write")
        }
        return nil
    }

    /// The metrics of this profile and of all others that share its file.
    public func writeMetrics(_ state: RunState) throws {
        guard let metricsFile else { return }
        var states = [(profile: profile, state: state)]
        for other in metricsProfiles where other != profile {
            // One that cannot be read is told by its own runs.
            let path = RunState.path(in: stateFolder, profile: other)
            if let state = try? RunState.read(path) { states.append((other, state)) }
        }
        states.sort { ($0.profile ?? "") < ($1.profile ?? "") }
        do { try Metrics.write(states, to: metricsFile) } catch let error as BackupError where error.code == .notFound {
            // To whoever reads exit codes, what is not there is the vault.
            throw BackupError(
                .failed, "the metrics cannot be written: there is no such folder", at: metricsFile,
                remedy: "make the folder, or change 'metrics.file'")
        }
    }

    private func tell(_ event: Ping.Event, _ log: String = "") -> [Finding] {
        guard let ping, let finding = ping.tell(event, log: log) else { return [] }
        return [finding]
    }

    // MARK: One at a time

    /// Whether a run holds that folder, or may hold it: the account of a monitor may have no right to look.
    public static func mayBeAtWork(in folder: String) -> Bool {
        do { return try withExtendedLifetime(lock(folder)) { false } } catch {
            return (error as? BackupError)?.code != .notFound
        }
    }

    /// Holds a folder for one run as long as what it returns lives; the kernel lets go of it when the process ends.
    public static func lock(_ folder: String, waitSeconds: Double = 0) throws -> FileHandle {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw errno == ENOENT
                ? BackupError.noVault(at: folder) : BackupError.fromErrno("cannot be opened", at: folder)
        }
        let handle = FileHandle(owning: descriptor, path: folder)
        guard try handle.lock(waitSeconds: waitSeconds) else {
            let holder = HostView.holder(ofLockOn: handle).map { ": process \($0) since \(GoTime($1).localText)" }
            throw BackupError(
                .locked, "another run is at work here" + (holder ?? ""), at: folder,
                remedy: "wait for it, or let --lock-wait do so")
        }
        return handle
    }
}

extension RunState {
    /// Somebody says that a loss was meant: from now on this snapshot is the measure. `suspects` are all that were tagged.
    public mutating func acknowledge(_ snapshot: String, holding census: LibraryCensus, suspects: [String]) {
        acknowledged = Array(Set(acknowledged + suspects + [snapshot])).sorted()
        // What the last run said to do is done.
        if let message = lastRun?.message, suspicions.contains(where: { message.hasPrefix($0) }) {
            lastRun?.message = "a loss that is accepted by now; the next run removes snapshots again"
        }
        good = Good(snapshot: snapshot, census: census)
        (suspect, suspicions) = (nil, [])
    }
}

extension NightlyRun.Settings {
    public init(_ configuration: Configuration) throws {
        policy = try configuration.retentionPolicy()
        if let text = configuration.text("keep.group-by") { grouping = try RetentionGrouping(text) }
        if let percent = configuration.integer("tripwire.percent") { tripwire.percent = percent }
        if let count = configuration.integer("tripwire.at-least") { tripwire.atLeast = count }
        for measure in LibraryCensus.Measure.allCases {
            if let percent = configuration.integer("tripwire.\(measure.rawValue)") {
                tripwire.percentOf[measure] = percent
            }
        }
        if let parts = configuration.integer("check.parts") { checkParts = parts }
        if let text = configuration.text("drill.every") { drillEvery = CalendarSpan(text) }
        if let percent = configuration.number("prune.max-unused") { maxUnusedPercent = percent }
    }
}
