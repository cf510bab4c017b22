import TestSupport
import Testing

@testable import BackupKit

private func fields(_ text: String) throws -> [Field] {
    var found: [Field] = []
    var pen = JSONPen()
    let bytes = Array(text.utf8)
    try bytes.withUnsafeBytes { raw in
        try BibParser.parse(raw) { block in
            guard block.kind == .entry else { return }
            pen.clear()
            Publication.write(block, with: &pen) { block.value(of: block.fields[$0]) }
            found = try Fields.parse(pen.written)
        }
    }
    return found
}

private func work(_ text: String) throws -> WorkIdentity { WorkIdentity(try fields(text)) }

/// What two entries say about being one work, from both sides.
private func verdicts(_ one: String, _ other: String) throws -> [WorkIdentity.Verdict] {
    let works = try [one, other].map(work)
    return [works[0].verdict(works[1]), works[1].verdict(works[0])]
}

private func errata(by people: String) -> String { "@misc{k, author={\(people)}, title={Errata}, year=1999}" }

private func editorial(_ place: String) -> String {
    "@misc{k, author={B. Kern}, title={Editorial}, year=1999, \(place)}"
}

@Suite struct WorkIdentityTests {
    @Test(
        arguments: [
            ("doi = {10.1000/ABC}", "doi:10.1000/abc"), ("doi = {https://doi.org/10.1000/abc}", "doi:10.1000/abc"),
            ("doi = {http://dx.doi.org/10.1000%2Fabc}", "doi:10.1000/abc"),
            ("doi = {doi: 10.1000/abc.}", "doi:10.1000/abc"),
            ("doi = {DOI 10.1000/a\\_b}", "doi:10.1000/a_b"), ("doi = {10.1000/a{\\_}b}", "doi:10.1000/a_b"),
            ("doi = {10.1016/0022(94)90001-9}", "doi:10.1016/0022(94)90001-9"),
            ("url = {https://doi.org/10.1000/abc?x=1}", "doi:10.1000/abc"), ("url = {https://x.org/10.1000/abc}", nil),
            ("doi = {none}", nil), ("doi = {10.1000/}", nil),
            ("doi = {10.48550/arXiv.2101.00001}", "arxiv:2101.00001"),
            ("eprint = {2101.00001v3}, archiveprefix = {arXiv}", "arxiv:2101.00001"),
            ("eprint = {arXiv:2101.00001 [cs.DL]}", "arxiv:2101.00001"),
            ("eprint = {math.GT/0309136}, eprinttype = {arxiv}", "arxiv:math/0309136"),
            ("url = {https://arxiv.org/pdf/2101.00001v2.pdf}", "arxiv:2101.00001"),
            ("url = {http://arxiv.org/abs/hep-th/9901001}", "arxiv:hep-th/9901001"),
            ("eprint = {123456}, archiveprefix = {HAL}", nil), ("eprint = {2101.1}", nil),
            ("pmid = {PMID: 0012345}", "pmid:12345"), ("eprint = {12345}, eprinttype = {pubmed}", "pmid:12345"),
            ("url = {https://pubmed.ncbi.nlm.nih.gov/12345/}", "pmid:12345"),
            ("bibcode = {2020ApJ...900....1S}", "bibcode:2020apj...900....1s"),
            (
                "adsurl = {https://ui.adsabs.harvard.edu/abs/2020A%26A...641A...6P/abstract}",
                "bibcode:2020a&a...641a...6p"
            ),
            ("bibcode = {2021arXiv210100001S}", "arxiv:2101.00001"),
            ("isbn = {0-306-40615-2}", "isbn:9780306406157"),
            ("isbn = {978 0 306 40615 7 (hbk.)}", "isbn:9780306406157"),
            ("isbn = {ISBN 9780306406157}", "isbn:9780306406157"), ("isbn = {978-0-306-40615-8}", nil),
            ("isbn = {043942089X}", "isbn:9780439420891"),
        ] as [(String, String?)])
    func identifiersAreNormalised(_ field: String, _ expected: String?) throws {
        #expect(try work("@book{k, \(field)}").evidence.first == expected)
    }

    /// Strangers and siblings: what two names say of more than the first given name has to agree, too.
    @Test(
        arguments: [
            ("Hall, J. A.", "Hall, J. B."), ("Hall, John Adam", "Hall, John Brian"), ("Hall, John Adam", "Hall, J. B."),
            ("Wang, Xiao-Yu", "Wang, Xiao-Ming"), ("Wang, X.-Y.", "Wang, X.-Z."), ("Wang, Xiaoyu", "Wang, Xiao-Ming"),
            ("Kim, Min Jun", "Kim, Min Seo"), ("Hall, Jr., Jim", "Hall, Sr., Jim"),
            ("J.R.R. Tolkien", "J.R.S. Tolkien"),
            ("Wei Wang", "Wen Wang"),
        ])
    func peopleOfOtherGivenNames_areStrangers(_ one: String, _ other: String) throws {
        #expect(try verdicts(errata(by: one), errata(by: other)) == [.different, .different])
    }

    @Test(
        arguments: [
            ("Hall, J. A.", "Hall, J."), ("Hall, John Adam", "J. A. Hall"), ("Sartre, Jean-Paul", "Sartre, J.-P."),
            ("Wang, Xiaoyu", "Wang, Xiao-Yu"), ("Hall, Jr., Jim", "Hall, Jim"),
            ("Hall, Alexander", "Hall, A. B."), ("J.R.R. Tolkien", "Tolkien, John Ronald Reuel"),
            ("Hall, Jr., Jim", "Hall, Jr., J."), ("Ludwig van Beethoven", "van Beethoven, L."),
        ])
    func shortenedNames_areOnePerson(_ one: String, _ other: String) throws {
        #expect(try verdicts(errata(by: one), errata(by: other)) == [.same, .same])
    }

    /// Of one author, title and year: an "Editorial" in each section, issue and day.
    @Test(
        arguments: [
            ("journal={Physical Review A}", "journal={Physical Review B}"),
            ("journal={Phys. Rev. A}", "journal={Physical Review E}"),
            ("journal={Acta Cryst. C}", "journal={Acta Crystallographica Section E}"),
            ("journal={J. Chem. Soc., Part 1}", "journal={J. Chem. Soc., Part 2}"),
            ("journal={J. Phys.: Condens. Matter 1}", "journal={J. Phys.: Condens. Matter 2}"),
            ("journal={Acta Math. Ser. I}", "journal={Acta Math. Ser. V}"),
            ("journal={Acta Math. Ser. II}", "journal={Acta Math. Ser. III}"),
            ("booktitle={ICML Workshop 1}", "booktitle={ICML Workshop 12}"),
            ("month=jan, day={1}", "month=jan, day={2}"), ("month={3 January}", "month={4 January}"),
            ("month={May 3}", "month={May~4}"), ("month={Spring}", "month={Fall}"), ("month={Q1}", "month={Q2}"),
            ("month={1--2}", "month={3--4}"), ("month={janvier}", "month={mai}"),
            ("month=jan, day={1}", "date={1999-01-02}"), ("month={July/August}", "month={September/October}"),
            ("school={Yale}", "school={MIT}"), ("part={1}", "part={2}"), ("version={1.0}", "version={2.0}"),
            ("maintitle={Cats}", "maintitle={Dogs}"), ("crossref={a}", "crossref={b}"),
            ("date={1999-21}", "date={1999-23}"), ("date={1999-21}", "date={1999}, month={Fall}"),
            ("date={1999-01/1999-02}", "date={1999-01/1999-04}"), ("date={1999/2001}", "date={1999/2005}"),
            ("month={jan/feb}", "month={jan/mar}"), ("origyear={1900}", "origdate={1950}"),
            ("journal={J. Phys.}, journalsubtitle={A: General}", "journal={J. Phys.}, journalsubtitle={B: Atomic}"),
            ("booktitle={Works}, booksubtitle={Early Years}", "booktitle={Works}, booksubtitle={Late Years}"),
            ("maintitle={Works}, mainsubtitle={Physics}", "maintitle={Works}, mainsubtitle={Letters}"),
            ("issuetitle={On Owls}", "issuetitle={On Bees}"), ("edition={Second}", "edition={3}"),
        ])
    func whatAppearedElsewhere_isAnotherWork(_ one: String, _ other: String) throws {
        #expect(try verdicts(editorial(one), editorial(other)) == [.different, .different])
        #expect(try work(editorial(one)).place != work(editorial(other)).place)
    }

    @Test(
        arguments: [
            ("journal={Physical Review A}", "journal={Phys. Rev. A}"),
            ("journal={Phys. Rev. A}", "journal={Phys. Rev.}"),
            ("journal={Acta Cryst. C}", "journal={Acta Crystallographica C}"),
            ("journal={Proc. Natl. Acad. Sci. U.S.A.}", "journal={Proc. Natl. Acad. Sci.}"),
            ("journal={PNAS}", "journal={Proceedings of the National Academy of Sciences}"),
            ("month=jan, day={1}", "date={1999-01-01}"), ("month={3 January}", "month=jan"),
            ("month={janvier}", "month=jan"), ("month={jan}", "month={1}"), ("day={01}", "month={jan 1}"),
            ("school={MIT}", "school={Massachusetts Institute of Technology}"),
            ("school={Yale}", "school={Yale University}"), ("crossref={a}", "booktitle={Cats}"),
            ("booktitle={Cats}, crossref={a}", "booktitle={Cats}, crossref={b}"), ("edition={2}", "edition={Second}"),
            ("edition={2nd}", "edition={2}"), ("date={1999-23}", "month={Fall}"), ("date={1999/2001}", "month=jan"),
            ("booksubtitle={Early Years}", "booktitle={Works}"),
        ])
    func otherWordsForThePlace_areNoOtherWork(_ one: String, _ other: String) throws {
        #expect(try verdicts(editorial(one), editorial(other)) == [.same, .same])
    }

    @Test func anISBNNamesAPartOnlyWithItsPlace() throws {
        #expect(try work("@incollection{k, isbn={0306406152}}").evidence == [])
        #expect(try work("@incollection{k, isbn={0306406152}, pages={12--20}}").evidence == ["isbn:9780306406157 12"])
        #expect(try work("@article{k, isbn={0306406152}}").evidence == [])
        let two = try work("@book{k, isbn={9780306406157 (hbk.), 043942089X, 9780306406158}}")
        #expect(two.evidence == ["isbn:9780306406157", "isbn:9780439420891"])
    }

    /// Title, authors and year however they are written.
    @Test(arguments: [
        "author={M{\\\"u}ller, Hans}, title={{\\'E}tude of {DNA}}, year=2001",
        "author={Müller, H.}, title={Étude of DNA}, year={2001}",
        "author={Hans M\\\"uller}, title={\\'{E}tude of \\emph{DNA}!}, date={2001-05-03}",
        "author={M\u{fc}ller, Hans}, title={\u{c9}tude of DNA.}, year={c. 2001}",
    ])
    func theSameWorkGetsTheSameID(_ text: String) throws {
        let usual = WorkID(try fields("@article{a, author={Muller, Hans}, title={Etude of DNA}, year=2001}")).first
        #expect(WorkID(try fields("@article{b, \(text)}")).first == usual)
        #expect(try work("@article{c, \(text)}").evidence == ["work:etudeofdna|muller h|2001"])
    }

    @Test func namesAreComparedByFamilyAndInitial() throws {
        func people(_ field: String) -> [String] { WorkText.people(field).people.map { "\($0.family) \($0.initial)" } }
        #expect(people("von Neumann, John and Ludwig van Beethoven") == ["vonneumann j", "vanbeethoven l"])
        #expect(
            people("King, Jr, Martin Luther and {The ATLAS Collaboration}") == ["king m", "theatlascollaboration "])
        #expect(people("Anders And") == ["anders "])
        #expect(people("J. R. R. Tolkien and others") == ["tolkien j"])
        #expect(!WorkText.people("Tolkien, J. and others").areAll)
        #expect(people("{\\'E}mile Zola AND {\\O}rsted, H. C.") == ["zola e", "orsted h"])
    }

    @Test(arguments: [
        // Identifiers decide, the strongest that both have first.
        ("doi={10.1/a}, title={A}", "doi={10.1/A}, title={A: with a subtitle}", WorkIdentity.Verdict.same),
        ("doi={10.1/a}, title={A}", "doi={10.1/b}, title={A}", .different),
        ("doi={10.1/a}, pmid={1}", "doi={10.1/a}, pmid={2}", .same),
        ("pmid={1}, title={A}", "doi={10.1/a}, title={A}", .unknown),
        // A title alone says nothing, and neither do missing fields.
        ("title={Editorial}, note={1}", "title={Editorial}, note={2}", .unknown),
        ("title={Editorial}, year=2001", "title={Editorial}, author={A, B}, year=2001", .unknown),
        ("author={A, B}, title={T}, year=2001", "author={A, Bob and others}, title={{T}}, year=2001, note={n}", .same),
        ("author={A, B and C, D}, title={T}, year=2001", "author={A, B and others}, title={T}, year=2001", .same),
        ("author={A, B and C, D}, title={T}, year=2001", "author={A, B}, title={T}, year=2001", .unknown),
        (
            "author={Smith, Ann}, title={Introduction}, year=2020",
            "author={Smith, Zoe}, title={Introduction}, year=2020",
            .different
        ),
        ("author={A, B}, title={T}, year=2001", "author={A, B}, title={T}, year=2002", .unknown),
        (
            "author={A, B}, title={Editorial}, year=2001, number=1",
            "author={A, B}, title={Editorial}, year=2001, number=2",
            .different
        ),
        ("author={A, B}, title={T}, year=2001", "author={C, D}, title={U}, year=2001", .different),
        // A DOI that was copied to another paper.
        ("doi={10.1/a}, author={A, B}, title={One}", "doi={10.1/a}, author={C, D}, title={Two}", .different),
    ])
    func twoPublicationsAreOneWorkOrNot(_ left: String, _ right: String, _ verdict: WorkIdentity.Verdict) throws {
        let (left, right) = (try work("@article{k, \(left)}"), try work("@article{k, \(right)}"))
        #expect(left.verdict(right) == verdict)
        #expect(right.verdict(left) == verdict)
    }

    @Test func partsThatCarryTheIdentifierOfTheirBookAreNotTheBook() throws {
        let book = try work("@book{b, doi={10.1/b}, title={The Book}}")
        let one = try work("@incollection{c, doi={10.1/b}, title={First}, pages={1--9}}")
        let two = try work("@incollection{d, doi={10.1/b}, title={Second}, pages={10--19}}")
        #expect(book.verdict(one) == .different && one.verdict(two) == .different)
        let again = try work("@incollection{c, doi={10.1/b}, title={First!}, pages={1-12}}")
        #expect(one.verdict(again) == .same)
    }

    /// Equal titles, authors and years are not enough.
    @Test(
        arguments: [
            ("@article{k, journal={J. Cats}}", "@article{k, journal={J. Dogs}}"),
            ("@article{k, journal={J. Cats}, volume=1}", "@article{k, journaltitle={Journal of Dogs}}"),
            ("@article{k, issue=1}", "@article{k, issue=2}"), ("@article{k, articleno=7}", "@article{k, articleno=8}"),
            ("@article{k, date={2020-03}}", "@article{k, date={2020-04}}"),
            ("@article{k, date={2020-03-01}}", "@article{k, date={2020-03-02}}"),
            ("@article{k, month=mar}", "@article{k, month={April}}"),
            ("@article{k, month={3}}", "@article{k, date={2020-04}}"),
            ("@misc{k, year={2020a}}", "@misc{k, year={2020b}}"),
            ("@incollection{k, booktitle={Cats}}", "@incollection{k, booktitle={Dogs}}"),
            ("@article{k, journal={Nature}}", "@phdthesis{k, school={MIT}}"),
            ("@book{k, edition={1}}", "@book{k, edition={2}}"),
            ("@phdthesis{k, school={MIT}}", "@mastersthesis{k, school={MIT}}"),
            ("@thesis{k, type={phdthesis}}", "@thesis{k, type={Master's thesis}}"),
            ("@misc{k, month={4}, day={3}}", "@misc{k, month={4}, day={4}}"),
            ("@misc{k, month={4}, day={3}}", "@misc{k, date={2020-04-04}}"),
            ("@article{k, season={spring}}", "@article{k, season={fall}}"),
            ("@misc{k, howpublished={Talk at Bonn}}", "@misc{k, howpublished={Talk at Rome}}"),
            ("@unpublished{k, eventtitle={Ringberg}}", "@unpublished{k, eventtitle={Aspen}}"),
            ("@unpublished{k, eventdate={2020-01-01}}", "@unpublished{k, eventdate={2020-02-01}}"),
            ("@misc{k, url={http://a.org/x}}", "@misc{k, url={http://b.org/x}}"),
            ("@book{k, translator={Fagles, Robert}}", "@book{k, translator={Wilson, Emily}}"),
            ("@book{k, origdate={1781}}", "@book{k, origdate={1787}}"),
            ("@article{k, article-number={12}}", "@article{k, article-number={13}}"),
            ("@book{k, series={LNCS 1}}", "@book{k, series={LNCS 2}}"),
            ("@misc{k, title={Is P = NP?}}", "@misc{k, title={Is P != NP?}}"),
            ("@book{k, subtitle={Of Cats}}", "@book{k, subtitle={Of Dogs}}"),
            ("@book{k, title={Programming in C}}", "@book{k, title={Programming in C++}}"),
            ("@book{k, title={Programming in C}}", "@book{k, title={Programming in C\\#}}"),
            ("@misc{k, title={Dose of 1.5 mg}}", "@misc{k, title={Dose of 15 mg}}"),
            ("@misc{k, title={Age ≤ 65}}", "@misc{k, title={Age ≥ 65}}"),
            ("@misc{k, author={Smith, Xin}}", "@misc{k, author={Smith, Xiaoming}}"),
            ("@article{k, series={A}}", "@article{k, series={B}}"),
            ("@dataset{k, publisher={Zenodo}}", "@article{k, journal={Nature}}"),
            ("@movie{k}", "@book{k}"), ("@software{k}", "@article{k}"),
            ("@online{k, url={https://a.org/xY}}", "@online{k, url={https://a.org/Xy}}"),
            ("@book{k, date={-0500}}", "@book{k, date={0500}}"),
            ("@book{k, year={1990--1995}}", "@book{k, year={1990--1999}}"),
            ("@article{k, year={January 2001}}", "@article{k, year={May 2001}}"),
            ("@phdthesis{k, type={Habilitation}}", "@phdthesis{k, type={Dissertation}}"),
            ("@book{k, title={Sonata in C♯}}", "@book{k, title={Sonata in C♭}}"),
            ("@book{k, title={A → B}}", "@book{k, title={A ← B}}"),
            ("@book{k, title={The case $k=-1$}}", "@book{k, title={The case $k=1$}}"),
            ("@book{k, title={ขาว}}", "@book{k, title={ข่าว}}"), ("@book{k, title={கல}}", "@book{k, title={கல்}}"),
            ("@book{k, title={Über P = NP}}", "@book{k, title={Über P != NP}}"),
            ("@book{k, title={Art. Vol. 1}, isbn={0306406152}}", "@book{k, title={Art. Vol. 2}, isbn={0306406152}}"),
            ("@book{k, title={Birds}, isbn={0306406152}}", "@book{k, title={Fishes}, isbn={0306406152}}"),
            (
                "@book{k, title={Art. Vol. 1}, isbn={978-0-201-48541-7, 978-0-201-89683-1}}",
                "@book{k, title={Art. Vol. 2}, isbn={978-0-201-48541-7, 978-0-201-89684-8}}"
            ),
            ("@book{k, isbn={978-0-201-48541-7}, volume=1}", "@book{k, isbn={978-0-201-48541-7}, volume=2}"),
        ])
    func worksThatSayOtherThingsAreToldApart(_ one: String, _ other: String) throws {
        let (mine, theirs) = (try work(filled(one)), try work(filled(other)))
        #expect(mine.verdict(theirs) != .same && theirs.verdict(mine) != .same)
        // Under one id that their texts have made they are two records.
        let records = try [one, other].map { text in
            let fields = try fields(filled(text))
            return Record(
                id: RecordID(zone: "Library", name: "x"), type: RecordType.publication, localID: "x",
                fields: Fields.text(fields), createdAt: time(0), modifiedAt: time(0)
            ).identified(as: WorkID(fields).first)
        }
        if records[0].id == records[1].id { #expect(try !WorkLineage.isOneRecord(records[0], records[1])) }
    }

    @Test(
        arguments: [
            ("@article{k, journal={J. Cats}}", "@article{k, journal={Journal of Cats}}"),
            (
                "@article{k, journal={Proc. Natl. Acad. Sci. U.S.A.}}",
                "@article{k, journal={Proceedings of the National Academy of Sciences}}"
            ),
            ("@article{k, journal={PRL}}", "@article{k, journaltitle={Physical Review Letters}}"),
            ("@article{k, journal={Nature}}", "@misc{k, note={x}}"),
            ("@article{k, journal={Astrophysical Journal}}", "@article{k, journal={Astrophys. J.}}"),
            ("@article{k, journal={The Astrophysical Journal Letters}}", "@article{k, journal={ApJL}}"),
            ("@article{k, journal={European Heart Journal}}", "@article{k, journal={Eur. Heart J.}}"),
            ("@article{k, journal={Physical Review D}}", "@article{k, journal={PRD}}"),
            ("@article{k, journal={Science (New York, N.Y.)}}", "@article{k, journal={Science}}"),
            ("@book{k, author={Müller, Ann}}", "@book{k, author={Mueller, A.}}"),
            ("@misc{k, url={http://www.a.org/x/}}", "@misc{k, url={https://a.org/x}}"),
            ("@phdthesis{k, school={MIT}}", "@thesis{k, type={Ph.D. thesis}}"),
            ("@misc{k, howpublished={Talk}}", "@misc{k, howpublished={Talk at Bonn}}"),
            ("@misc{k, eventtitle={ICML}}", "@misc{k, eventtitle={International Conference on Machine Learning}}"),
            ("@article{k, series={newseries}}", "@article{k, series={New Series}}"),
            ("@online{k, url={https://A.org/x}}", "@online{k, url={http://a.org/x/}}"),
            ("@article{k, year={January 2001}}", "@article{k, year=2001, month=jan}"),
            ("@book{k, title={CO₂}}", "@book{k, title={CO$_2$}}"),
            ("@book{k, title={A → B}}", "@book{k, title={A $\\to$ B}}"),
            ("@book{k, title={Sonata in C♯}}", "@book{k, title={Sonata in C$\\sharp$}}"),
            ("@misc{k, title={Is P $\\neq$ NP}}", "@misc{k, title={Is P ≠ NP}}"),
            ("@article{k, month=mar}", "@article{k, date={2020-03-07}}"),
            ("@book{k, title={{\\\"U}ber CO$_{2}$: 1.5 mg}}", "@book{k, title={Über CO2 -- 1.5 mg}}"),
            ("@book{k, title={Age $\\leq$ 65}}", "@book{k, title={Age ≤ 65}}"),
            ("@misc{k, author={Smith, J.-P.}}", "@misc{k, author={Jean-Paul Smith}}"),
            ("@misc{k, author={Smith, Th.}}", "@misc{k, author={Smith, Thomas M.}}"),
            ("@book{k, isbn={978-0-201-48541-7, 978-0-201-89683-1}}", "@book{k, isbn={978-0-201-48541-7}, volume=2}"),
        ])
    func wordingsOfOneWork(_ one: String, _ other: String) throws {
        #expect(try work(filled(one)).verdict(work(filled(other))) == .same)
    }

    /// The entry with a title, authors and a year where it has none.
    private func filled(_ entry: String) -> String {
        var entry = String(entry.dropLast())
        for (name, value) in [("title", "Editorial"), ("author", "Smith, Ann"), ("year", "2020")] {
            let isThere = entry.contains(" \(name)={") || name == "year" && entry.contains("date={")
            if !isThere { entry += ", \(name)={\(value)}" }
        }
        return entry + "}"
    }

    @Test func aPlaceMayBeCorrectedWhereTheLibraryIsKnown() throws {
        let (old, new) = (
            try work("@article{k, author={A, B}, title={T}, year=2001, volume=1}"),
            try work("@article{k, author={A, B}, title={T}, year=2001, volume=2}")
        )
        #expect(old.verdict(new) == .different && old.verdict(new, isRelated: true) == .same)
    }

    /// Both files have the time 1000; one entry was imported again later.
    @Test func filesOfOneTimeDoNotRenameAnEntry_andARenameDoes() throws {
        func entry(_ key: String, at time: Int64, fieldTimes: Int64? = nil) throws -> Record {
            let fields = try fields("@article{\(key), author={A, B}, title={T}, year=2001}")
            let id = RecordID(zone: RecordType.libraryZone, name: WorkID(fields).first)
            var record = Record(
                id: id, type: RecordType.publication, localID: id.name, fields: Fields.text(fields),
                createdAt: Timestamp(milliseconds: 1000), modifiedAt: Timestamp(milliseconds: time))
            for field in fields where field.name != "citeKey" {
                record.fieldTimes[field.name] = fieldTimes.map { Timestamp(milliseconds: $0) }
            }
            return record
        }
        let known = try entry("jones", at: 1000)
        #expect(try !WorkLineage.isOneRecord(known, entry("smith", at: 2000)))
        #expect(try WorkLineage.isOneRecord(known, entry("jones", at: 2000)))
        #expect(try WorkLineage.isOneRecord(known, entry("smith", at: 2000, fieldTimes: 1000)))
    }

    @Test func fieldsReadInOnePassGiveTheSameID() throws {
        for text in [
            "@article{k, doi={10.1/a}, title={A \"quoted\" \\\\ title}}",
            "@article{k, author={M{\\\"u}ller, H}, title={T}, year=2001}", "@misc{k, title={Only}}", "@misc{k}",
        ] {
            let fields = try fields(text)
            var pen = JSONPen()
            Array(text.utf8).withUnsafeBytes { raw in
                BibParser.parse(raw) { block in
                    Publication.write(block, with: &pen) { block.value(of: block.fields[$0]) }
                }
            }
            let id = WorkID.first(pen, SHA256Hasher())
            #expect(id == (text.contains("Only") || text == "@misc{k}" ? nil : WorkID(fields).first))
        }
    }

    @Test func brokenTextNeverTrapsAnIdentity() throws {
        var random = SeededGenerator(seed: testSeed())
        let pieces = [
            "\\", "{", "}", "10.", "/", "doi:", "978", "-", "x", "é", "\u{301}", " and ", ",", "%2", "v", "arxiv:", "1",
        ]
        for _ in 0..<3000 {
            let noise = (0..<random.below(12)).map { _ in pieces[random.below(pieces.count)] }.joined()
            let names = [
                "doi", "eprint", "isbn", "pmid", "bibcode", "url", "author", "title", "year", "pages", "adsurl",
            ]
            let identity = WorkIdentity(names.map { Field($0, .string(noise)) })
            _ = identity.evidence
            #expect(identity.verdict(identity) == .same)
        }
    }
}
