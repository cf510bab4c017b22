/// Where the project lies, with its sources, documents and samples.
public let projectFolder = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
