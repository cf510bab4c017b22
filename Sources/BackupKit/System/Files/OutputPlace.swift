/// Where an output lies, or a store or a hub, that somebody has named.
public enum OutputPlace {
    /// What a symbolic link leads to: the output takes its place, and the link stays. Anything else lies where it is named.
    /// Throws where the link leads nowhere.
    public static func behindLinks(_ path: String) throws -> String {
        let name = withoutTrailingSlashes(path)
        guard try FileStatus.ofName(name)?.isLink == true else { return path }
        guard try FileStatus.ofTarget(name) != nil, let place = Directory.real(name) else {
            try DatabasePlace.refuseLostLink(name)
            return path
        }
        return place
    }
}
