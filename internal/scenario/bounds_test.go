package scenario

import (
	"fmt"
	"path/filepath"
	"testing"
)

// bound is one promise about hostile or broken mail and the tests that hold it.
type bound struct {
	promise string
	tests   []string // package.Test
}

// bounds are the limits and repairs of every stage that a mail goes through, and the public bugs of other parsers.
func bounds() []bound {
	const mail, smtp, auth, worker = "shared/mail.", "shared/smtpd.", "shared/mailauth.", "shared/pipeline."
	list := []bound{
		{"accept: 550 for an unknown inbox", []string{"internal/scenario.TestMailToNobodyIsRefused", smtp + "TestRecipients"}},
		{"accept: 450 for a paused inbox; on AWS its mail waits", []string{smtp + "TestRecipients", worker + "TestPausedInboxKeepsAndProcessesOnResume"}},
		{"accept: 25 MiB at most", []string{smtp + "TestSizeLimit", smtp + "TestDefaultSizeLimit"}},
		{"accept: 50 recipients at most", []string{smtp + "TestRecipientLimit", worker + "TestAcceptStoredSplitsManyRecipients"}},
		{"accept: so many a minute, an address guessed so often, so many bytes at once", []string{smtp + "TestRate", smtp + "TestAddressGuessing", worker + "TestAcceptBudget"}},
		{"accept: bytes, then row, then 250", []string{worker + "TestAcceptStoresBytesThenRowThenMessage", smtp + "TestRawBytesAreKept"}},
		{"accept: one line is 1 MiB at most, and nothing is smuggled behind a line", []string{smtp + "TestLongLine", smtp + "TestSmuggling"}},
		{
			"scan: header block 256 KiB, 1,000 fields, field 64 KiB, 1,000 addresses, depth 12, 2,000 parts, boundary 200 B, line 1 MiB; the rest is delivered and marked",
			[]string{mail + "TestLimitsAtBoundAndBeyond", "shared/mail/scan.TestLimitsAtBoundAndBeyond", mail + "TestMessageOverTheSizeIsCut"},
		},
		{"scan: work and memory grow as the mail does", []string{mail + "TestHostileInputIsBounded", mail + "TestWorkGrowsLinearly", "shared/mail/scan.TestWorkIsLinear"}},
		{"scan: a mail that kills its workers is given up, its bytes are kept", []string{worker + "TestMailThatKillsItsWorkers", worker + "TestUnreadable", worker + "TestHostileMail"}},
		{"header: leading blank lines, a line From of mbox, CR CR LF, lines without a colon, NUL", []string{"shared/mail/scan.TestStructure", mail + "TestEdgesAreKeptAndMarked"}},
		{"header: 8-bit fields, encoded words in pieces, order and doubles kept", []string{"shared/mail/header.TestEightBitFields", "shared/mail/header.TestWords", mail + "TestHeadersKeepTheirOrder"}},
		{"header: several From are suspicious and on no list", []string{auth + "TestVerify", mail + "TestEdgesAreKeptAndMarked"}},
		{"duplicates are one mail", []string{worker + "TestDuplicates", worker + "TestDuplicatesAtOnce", worker + "TestMessageKey"}},
		{"loops, answers of programs, 50 hops: marked, told nobody, never forwarded", []string{mail + "TestFlags", worker + "TestFlags", worker + "TestLoopsTellNobody", worker + "TestForwardRefusedByTheWorker"}},
		{"authentication: 5 signatures, 5 s of DNS, a temporary failure is none", []string{auth + "TestSignatures", auth + "TestSlowDNS", auth + "TestTemporaryFailures"}},
		{"authentication: results that the mail brings along prove nothing, nor does an imported mail", []string{auth + "TestRelayed", worker + "TestImportedMailProvesNothing"}},
		{"senders: refused at the door, held or labelled", []string{"internal/scenario.TestSendersAtTheDoor", worker + "TestSenders", worker + "TestIntakeSender"}},
		{"body: charset by declaration, BOM, meta, sniffing", []string{mail + "TestCharsets", "shared/mail/charset.TestDecode", "shared/mail/charset.TestLengthDoesNotMatter"}},
		{"body: format=flowed, uuencode, broken base64 and quoted-printable", []string{mail + "TestFlowed", mail + "TestUuencodedFile", "shared/mail/transfer.TestDecode"}},
		{"body: control, bidi and tag characters go, hidden text is kept apart", []string{"shared/mail/clean.TestText", mail + "TestHiddenTextReachesNothing", "shared/mail/markup.TestHiddenTextGoes"}},
		{"body: the DOM is bounded, remote images go, links say what they are", []string{"shared/mail/markup.TestBounded", "shared/mail/markup.TestSanitized", "shared/mail/markup.TestLinkSignals"}},
		{"files: a name is one path element of 200 B, the type is that of the bytes, archives stay closed", []string{mail + "TestCleanFilename", mail + "TestInspect"}},
		{"files: calendar 256 KiB, messages in messages, winmail.dat, S/MIME and PGP", []string{mail + "TestAttachmentKinds", mail + "TestEncodedMessageIsOpened", mail + "TestFlags"}},
		{"files: pieces are not joined and references not followed", []string{mail + "TestPiecesAreNotJoined", mail + "TestAttachmentKinds"}},
		{"threads: by reference, or by subject with a shared participant within 30 days", []string{"shared/inboxstore.TestThreads"}},
		{"what is new of a reply, codes and links", []string{mail + "TestCutReply", "shared/mail/cue.TestCodes", "shared/mail/cue.TestNoCodes", "shared/mail/cue.TestCodesAreBounded"}},
		{"rules and extraction: bounded, and no fault of theirs keeps a mail", []string{worker + "TestMailByRules", worker + "TestBrokenRulesKeepNoMail", "shared/inbox.TestRuleBounds"}},
		{"what does not fit in a row goes to a blob or is cut, and says so", []string{worker + "TestLargeBodyGoesToABlob", worker + "TestEverythingTooMuch", worker + "TestRowThatTheStoreRefuses"}},
		{"retention purges raw bytes and files, reprocessing sends nothing", []string{worker + "TestRetention", worker + "TestReprocessThatFindsTheSame", worker + "TestReprocessNotifies"}},
	}
	return list
}

// publicBugs is how many public reports about other parsers have an input of ours.
const publicBugs = 14

func TestBoundsAreHeld(t *testing.T) {
	tests := testsOf(t)
	for _, b := range bounds() {
		for _, name := range b.tests {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", b.promise, name)
			}
		}
		if len(b.tests) == 0 {
			t.Errorf("%s: no test holds it", b.promise)
		}
	}
	if !tests["shared/mail.TestPublicBugs"] {
		t.Error("nothing reads the inputs of public bugs")
	}
	for n := range publicBugs {
		if files, err := filepath.Glob(fmt.Sprintf("../../shared/mail/testdata/corpus/%02d*.eml", n+1)); err != nil || len(files) == 0 {
			t.Errorf("public bug %d has no input: %v", n+1, err)
		}
	}
}
