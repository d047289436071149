package mail

import (
	"bytes"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/buzon-mail/buzon/shared/mail/clean"
)

const (
	maxFilename = 200
	maxOriginal = 1024
	maxExt      = 20
)

// cleanFilename makes a name safe to show and to save under: the last path element, NFC, no control, bidirectional or invisible
// characters, at most 200 bytes with the extension kept. deceptive says that it tried to be something else.
func cleanFilename(name string) (out string, deceptive bool) {
	var counts clean.Counts
	name = clean.Line(name, &counts)
	deceptive = counts.Total() > 0
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name, deceptive = name[i+1:], true
	}
	if len(name) > 2 && name[1] == ':' { // C:name
		name, deceptive = name[2:], true
	}
	name = norm.NFC.String(name)
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`<>:"|?*`, r) || r == utf8.RuneError {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimLeftFunc(trimEnd(name), unicode.IsSpace)
	if len(name) > maxFilename {
		ext := path.Ext(name)
		if len(ext) > maxExt {
			ext = ""
		}
		name = trimEnd(clean.Cut(strings.TrimSuffix(name, ext), maxFilename-len(ext))) + ext
	}
	return name, deceptive
}

// trimEnd drops spaces of every width and dots from the end of a name, which some systems do when they save a file: what is
// shown is then what lies on the disk.
func trimEnd(name string) string {
	return strings.TrimRightFunc(name, func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
}

// signatures are the first bytes of file types, the more precise first.
//
//nolint:gochecknoglobals // constant table
var signatures = []struct {
	at    int
	magic string
	kind  string
}{
	{0, "%PDF-", "application/pdf"},
	{0, "\x89PNG\r\n\x1a\n", "image/png"},
	{0, "\xff\xd8\xff", "image/jpeg"},
	{0, "GIF8", "image/gif"},
	{8, "WEBP", "image/webp"},
	{0, "BM", "image/bmp"},
	{0, "II*\x00", "image/tiff"},
	{0, "MM\x00*", "image/tiff"},
	{4, "ftypheic", "image/heic"},
	{4, "ftyp", "video/mp4"},
	{0, "PK\x03\x04", "application/zip"},
	{0, "PK\x05\x06", "application/zip"},
	{0, "Rar!\x1a\x07", "application/vnd.rar"},
	{0, "7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"},
	{0, "\x1f\x8b", "application/gzip"},
	{0, "BZh", "application/x-bzip2"},
	{0, "\xfd7zXZ\x00", "application/x-xz"},
	{257, "ustar", "application/x-tar"},
	{0, "MSCF", "application/vnd.ms-cab-compressed"},
	{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"},
	{0, "{\\rtf", "application/rtf"},
	{0, "MZ", "application/vnd.microsoft.portable-executable"},
	{0, "\x7fELF", "application/x-elf"},
	{0, "\xcf\xfa\xed\xfe", "application/x-mach-binary"},
	{0, "\xca\xfe\xba\xbe", "application/java-vm"},
	{0, "L\x00\x00\x00\x01\x14\x02\x00", "application/x-ms-shortcut"},
	{0, "#!", "text/x-script"},
	{0, "BEGIN:VCALENDAR", "text/calendar"},
	{0, "BEGIN:VCARD", "text/vcard"},
	{0, "ID3", "audio/mpeg"},
	{8, "WAVE", "audio/wav"},
	{0, "OggS", "audio/ogg"},
	{0, "\x78\x9f\x3e\x22", "application/ms-tnef"},
	{32769, "CD001", "application/x-iso9660-image"},
}

// detect names the type of data by its first bytes; "" when they say nothing. Nothing is opened: an office document is told by
// the name of its first entry, which stands in clear.
func detect(data []byte) string {
	for _, s := range signatures {
		if len(data) >= s.at+len(s.magic) && string(data[s.at:s.at+len(s.magic)]) == s.magic {
			if s.kind == "application/zip" {
				return detectZip(data)
			}
			return s.kind
		}
	}
	head := bytes.ToLower(bytes.TrimLeft(data[:min(len(data), 512)], " \t\r\n\xef\xbb\xbf"))
	switch {
	case bytes.HasPrefix(head, []byte("<!doctype html")), bytes.HasPrefix(head, []byte("<html")), bytes.Contains(head, []byte("<script")):
		return "text/html"
	case bytes.HasPrefix(head, []byte("<svg")), bytes.HasPrefix(head, []byte("<?xml")) && bytes.Contains(head, []byte("<svg")):
		return "image/svg+xml"
	case bytes.HasPrefix(head, []byte("<?xml")):
		return "application/xml"
	case len(head) > 0 && bytes.IndexByte(head, 0) < 0 && utf8.Valid(head[:max(len(head)-3, 0)]):
		return "text/plain"
	default:
		return ""
	}
}

func detectZip(data []byte) string {
	head := data[:min(len(data), 4096)]
	switch {
	case bytes.Contains(head, []byte("word/")):
		return "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	case bytes.Contains(head, []byte("xl/")):
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	case bytes.Contains(head, []byte("ppt/")):
		return "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	case bytes.Contains(head, []byte("[Content_Types].xml")):
		return "application/vnd.openxmlformats-officedocument"
	case bytes.Contains(head, []byte("META-INF/MANIFEST")):
		return "application/java-archive"
	case bytes.Contains(head, []byte("mimetypeapplication/vnd.oasis")):
		return "application/vnd.oasis.opendocument"
	default:
		return "application/zip"
	}
}

// fileClass is what an extension promises.
type fileClass uint8

const (
	classDocument fileClass = 1 << iota
	classExecutable
	classArchive
	classMacro
	classActive
)

//nolint:gochecknoglobals // constant table
var extensions = map[string]fileClass{
	".pdf": classDocument, ".doc": classDocument, ".docx": classDocument, ".xls": classDocument, ".xlsx": classDocument, ".ppt": classDocument, ".pptx": classDocument,
	".txt": classDocument, ".rtf": classDocument, ".csv": classDocument, ".jpg": classDocument, ".jpeg": classDocument, ".png": classDocument, ".gif": classDocument, ".odt": classDocument,
	".exe": classExecutable, ".scr": classExecutable, ".com": classExecutable, ".pif": classExecutable, ".bat": classExecutable, ".cmd": classExecutable, ".js": classExecutable,
	".jse": classExecutable, ".vbs": classExecutable, ".vbe": classExecutable, ".wsf": classExecutable, ".wsh": classExecutable, ".hta": classExecutable, ".ps1": classExecutable,
	".msi": classExecutable, ".msp": classExecutable, ".jar": classExecutable, ".lnk": classExecutable, ".cpl": classExecutable, ".dll": classExecutable, ".sh": classExecutable,
	".reg": classExecutable, ".url": classExecutable, ".appx": classExecutable, ".apk": classExecutable, ".dmg": classExecutable, ".pkg": classExecutable, ".one": classExecutable, ".chm": classExecutable,
	".zip": classArchive, ".rar": classArchive, ".7z": classArchive, ".gz": classArchive, ".tgz": classArchive, ".tar": classArchive, ".bz2": classArchive, ".xz": classArchive,
	".cab": classArchive, ".ace": classArchive, ".arj": classArchive, ".iso": classArchive, ".img": classArchive, ".vhd": classArchive, ".vhdx": classArchive, ".z": classArchive,
	".docm": classMacro, ".dotm": classMacro, ".xlsm": classMacro, ".xltm": classMacro, ".xlam": classMacro, ".xlsb": classMacro, ".pptm": classMacro, ".potm": classMacro, ".ppam": classMacro, ".ppsm": classMacro,
	".html": classActive, ".htm": classActive, ".svg": classActive, ".xhtml": classActive, ".shtml": classActive, ".mht": classActive, ".mhtml": classActive, ".xml": 0,
}

// inspect lists what speaks for caution about a file.
func inspect(name, declared, detected string, data []byte) []FileFlag {
	var flags []FileFlag
	add := func(f FileFlag, when bool) {
		if when {
			flags = append(flags, f)
		}
	}
	ext := strings.ToLower(path.Ext(name))
	class := extensions[ext]
	inner := extensions[strings.ToLower(path.Ext(strings.TrimRight(strings.TrimSuffix(name, path.Ext(name)), " _")))]
	executable := class&classExecutable != 0 || isExecutable(detected)
	add(FlagDoubleExtension, inner != 0 && class != 0 && (executable || class&(classActive|classMacro) != 0 || inner&classExecutable != 0))
	add(FlagMacro, class&classMacro != 0 || strings.Contains(declared, "macroenabled") || hasMacros(detected, data))
	add(FlagArchive, class&classArchive != 0 || isArchive(detected))
	add(FlagEncryptedArchive, encryptedArchive(detected, data))
	add(FlagExecutable, executable)
	add(FlagActiveContent, class&classActive != 0 || detected == "text/html" || detected == "image/svg+xml")
	add(FlagTypeMismatch, mismatch(ext, class, declared, detected))
	return flags
}

func isExecutable(detected string) bool {
	switch detected {
	case "application/vnd.microsoft.portable-executable", "application/x-elf", "application/x-mach-binary", "application/java-vm",
		"application/java-archive", "application/x-ms-shortcut", "text/x-script":
		return true
	default:
		return false
	}
}

func isArchive(detected string) bool {
	switch detected {
	case "application/zip", "application/vnd.rar", "application/x-7z-compressed", "application/gzip", "application/x-bzip2",
		"application/x-xz", "application/x-tar", "application/vnd.ms-cab-compressed", "application/x-iso9660-image":
		return true
	default:
		return false
	}
}

// hasMacros looks for the names under which office formats keep macros; both stand in clear in the container's directory.
func hasMacros(detected string, data []byte) bool {
	switch {
	case strings.HasPrefix(detected, "application/vnd.openxmlformats"):
		return bytes.Contains(data, []byte("vbaProject.bin"))
	case detected == "application/x-ole-storage":
		return bytes.Contains(data, []byte("_\x00V\x00B\x00A\x00_\x00P\x00R\x00O\x00J\x00E\x00C\x00T"))
	default:
		return false
	}
}

// encryptedArchive reads the header bits that say so: ZIP APPNOTE 4.4.4 bit 0, RAR4 archive flag 0x80, RAR5 encryption header,
// the AES codec of 7z at the end of the file.
func encryptedArchive(detected string, data []byte) bool {
	switch {
	case bytes.HasPrefix(data, []byte("PK\x03\x04")) && len(data) > 7:
		return data[6]&1 != 0
	case bytes.HasPrefix(data, []byte("Rar!\x1a\x07\x00")) && len(data) > 11:
		return data[10]&0x80 != 0
	case bytes.HasPrefix(data, []byte("Rar!\x1a\x07\x01\x00")) && len(data) > 16:
		return data[13] == 4 || data[14] == 4
	case detected == "application/x-7z-compressed":
		return bytes.Contains(data[max(0, len(data)-4096):], []byte("\x06\xf1\x07\x01"))
	default:
		return false
	}
}

// mismatch reports that the bytes contradict the name or the declared type. Only clear contradictions count.
func mismatch(ext string, class fileClass, declared, detected string) bool {
	if detected == "" {
		return false
	}
	if isExecutable(detected) && class&classExecutable == 0 && detected != "text/x-script" {
		return true
	}
	want := ""
	switch ext {
	case ".pdf":
		want = "application/pdf"
	case ".png":
		want = "image/png"
	case ".jpg", ".jpeg":
		want = "image/jpeg"
	case ".gif":
		want = "image/gif"
	}
	if want == "" {
		switch declared {
		case "application/pdf", "image/png", "image/jpeg", "image/gif":
			want = declared
		}
	}
	return want != "" && detected != want
}

// extensionFor gives a nameless part an extension that fits.
func extensionFor(declared, detected string) string {
	for _, t := range [2]string{declared, detected} {
		switch t {
		case "application/pdf":
			return ".pdf"
		case "image/png":
			return ".png"
		case "image/jpeg":
			return ".jpg"
		case "image/gif":
			return ".gif"
		case "message/rfc822", "message/global":
			return ".eml"
		case "text/calendar":
			return ".ics"
		case "text/plain":
			return ".txt"
		case "text/html":
			return ".html"
		}
	}
	return ".bin"
}
