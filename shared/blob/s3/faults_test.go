package bucket_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/awsclient"
	"github.com/buzon-mail/buzon/shared/blob"
	bucket "github.com/buzon-mail/buzon/shared/blob/s3"
	"github.com/buzon-mail/buzon/shared/testkit/faults"
)

const (
	put = "PUT /mail/a"
	get = "GET /mail/a"
)

func faulty(t *testing.T) (*bucket.Store, *faults.Client) {
	t.Helper()
	c := &faults.Client{Server: fake(t)}
	return storeOf(t, c, bucket.Options{}), c
}

func storeOf(t *testing.T, c *faults.Client, o bucket.Options) *bucket.Store {
	t.Helper()
	o.AWS, o.Bucket, o.PathStyle = at("http://s3.test"), "mail", true
	o.AWS.HTTP = c
	s, err := bucket.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantErr(t *testing.T, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("err = %v, want %v with %q", err, want, text)
	}
	var driver interface{ ErrorCode() string }
	if errors.As(err, &driver) {
		t.Errorf("AWS's own error left the store: %T", driver)
	}
}

func write(t *testing.T, s *bucket.Store, data string) error {
	t.Helper()
	return s.Put(t.Context(), "a", strings.NewReader(data), int64(len(data)))
}

func wantBlob(t *testing.T, s *bucket.Store, want string) {
	t.Helper()
	got, err := s.Get(t.Context(), "a", 1<<24)
	if err != nil || string(got) != want {
		t.Errorf("blob %.20q (%d bytes), %v, want %.20q", got, len(got), err, want)
	}
}

func TestPutThroughFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []faults.Step
		asked int
		ok    bool
	}{
		{"slow down", faults.Repeat(2, faults.Refuse(503, "SlowDown", "")), 3, true},
		{"slow down for ever", faults.Repeat(9, faults.Refuse(503, "SlowDown", "")), 3, false},
		{"an outage", faults.Repeat(2, faults.Refuse(500, "InternalError", "")), 3, true},
		{"a long outage", faults.Repeat(9, faults.Answer(503, "")), 3, false},
		{"timeouts", faults.Repeat(2, faults.Timeout()), 3, true},
		{"a body that came too slowly", faults.Repeat(1, faults.Refuse(400, "RequestTimeout", "")), 2, true},
		{"the answer was lost, and the retry finds the key taken", faults.Repeat(1, faults.Lost()), 2, true},
		{"another put is under way", faults.Repeat(3, faults.Refuse(409, "ConditionalRequestConflict", "")), 4, true},
		{"others for ever", faults.Repeat(99, faults.Refuse(409, "ConditionalRequestConflict", "")), awsclient.MaxConflicts, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, client := faulty(t)
			client.Then(c.steps...)
			err := write(t, s, "mail")
			if c.ok && err != nil {
				t.Fatalf("err = %v", err)
			}
			if !c.ok {
				wantErr(t, err, blob.ErrUnavailable, "")
			}
			if n := len(client.Asked()); n != c.asked {
				t.Errorf("%d requests, want %d", n, c.asked)
			}
			client.Then()
			if c.ok {
				wantBlob(t, s, "mail")
			} else if _, err := s.Get(t.Context(), "a", 10); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("after the refusal: %v, want nothing there", err)
			}
		})
	}
}

func TestPutIsEncryptedAndExclusive(t *testing.T) {
	for key, want := range map[string]string{"": "AES256", "arn:aws:kms:eu-west-1:1:key/x": "aws:kms"} {
		client := &faults.Client{Server: fake(t)}
		if err := write(t, storeOf(t, client, bucket.Options{KMSKey: key}), "x"); err != nil {
			t.Fatal(err)
		}
		h := client.Asked()[0].Header
		for name, want := range map[string]string{
			"X-Amz-Server-Side-Encryption": want, "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": key, "If-None-Match": "*",
			"Content-Type": "application/octet-stream",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

// TestLargePutFromAStream: it can be sent again, though its reader can't be read again, and leaves no file behind.
func TestLargePutFromAStream(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	s, client := faulty(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 9<<16)
	stream := func(b []byte) io.Reader { return io.MultiReader(bytes.NewReader(b)) }
	for _, cut := range []int{-1, 1} {
		if err := s.Put(t.Context(), "a", stream(data), int64(len(data)+cut)); !errors.Is(err, blob.ErrSize) {
			t.Errorf("announced %+d bytes: %v", cut, err)
		}
	}
	client.WantOps(t)
	client.Then(faults.Timeout())
	if err := s.Put(t.Context(), "a", stream(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	client.WantOps(t, put, put)
	wantBlob(t, s, string(data))
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Setenv("TMPDIR", folder+"/none")
	wantErr(t, s.Put(t.Context(), "b", stream(data), int64(len(data))), blob.ErrUnavailable, "temporary file")
}

// body is an answer whose body goes on as told.
func body(length string, r io.Reader) faults.Step {
	return func(in *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		resp, err := faults.Answer(200, "", "Content-Length", length)(in, pass)
		if err == nil {
			resp.Body = io.NopCloser(r)
		}
		return resp, err
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func broken(before string) io.Reader {
	return io.MultiReader(strings.NewReader(before), readerFunc(func([]byte) (int, error) { return 0, errors.New("connection reset by peer") }))
}

func TestGetThroughFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []faults.Step
		asked int
		want  error
		text  string
	}{
		{"throttled", faults.Repeat(2, faults.Refuse(503, "SlowDown", "")), 3, nil, ""},
		{"down", faults.Repeat(9, faults.Refuse(500, "InternalError", "")), 3, blob.ErrUnavailable, "InternalError (HTTP status 500"},
		{"the body breaks off once", []faults.Step{body("4", broken("ma"))}, 2, nil, ""},
		{"the body ends early once", []faults.Step{body("4", strings.NewReader("ma"))}, 2, nil, ""},
		{"the body is too long once", []faults.Step{body("4", strings.NewReader("mailmail"))}, 2, nil, ""},
		{"the body always breaks off", faults.Repeat(9, body("4", broken(""))), 2, blob.ErrUnavailable, "after 0 of 4 bytes"},
		{"gone", []faults.Step{faults.Refuse(404, "NoSuchKey", "")}, 1, blob.ErrNotFound, ""},
		{"no such bucket is no missing blob", []faults.Step{faults.Refuse(404, "NoSuchBucket", "")}, 1, blob.ErrUnavailable, "does not exist in this region"},
		{"refused is no missing blob", []faults.Step{faults.Refuse(403, "AccessDenied", "no s3:ListBucket")}, 1, blob.ErrUnavailable, "lacks a permission"},
		{"expired credentials", []faults.Step{faults.Refuse(400, "ExpiredToken", "")}, 1, blob.ErrUnavailable, "have expired"},
		{"a skewed clock", []faults.Step{faults.Skewed(-time.Hour, "RequestTimeTooSkewed"), body("4", strings.NewReader("mail"))}, 2, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, client := faulty(t)
			if err := write(t, s, "mail"); err != nil {
				t.Fatal(err)
			}
			client.Then(c.steps...)
			got, err := s.Get(t.Context(), "a", 4)
			if c.want == nil && (err != nil || string(got) != "mail") {
				t.Errorf("get = %q, %v", got, err)
			}
			if c.want != nil {
				wantErr(t, err, c.want, c.text)
			}
			if n := len(client.Asked()); n != c.asked {
				t.Errorf("%d requests, want %d", n, c.asked)
			}
		})
	}
}

func TestDamagedOnTheWay(t *testing.T) {
	s, client := faulty(t)
	// CRC32 of "mail" as S3 sends it; what arrives is another text of the same length.
	wrong := func(in *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		return faults.Answer(200, "fail", "Content-Length", "4", "X-Amz-Checksum-Crc32", "xOPXXw==", "X-Amz-Checksum-Type", "FULL_OBJECT")(in, pass)
	}
	client.Then(wrong, wrong)
	_, err := s.Get(t.Context(), "a", 10)
	wantErr(t, err, blob.ErrUnavailable, "broke off")
}

// TestTooLargeIsNotRead: 40 MB of someone's mail never enter the memory of a function that asked for less.
func TestTooLargeIsNotRead(t *testing.T) {
	s, client := faulty(t)
	client.Then(body("41943040", readerFunc(func([]byte) (int, error) {
		t.Error("the body was read")
		return 0, io.EOF
	})))
	_, err := s.Get(t.Context(), "a", 1<<20)
	wantErr(t, err, blob.ErrTooLarge, "")
	client.WantOps(t, get)
}

// TestSlowBody: a body that stops to come ends with an error that says so, and not with the function's time.
func TestSlowBody(t *testing.T) {
	client := &faults.Client{}
	s := storeOf(t, client, bucket.Options{Stall: time.Millisecond})
	stalled := func(in *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		return body("10", io.MultiReader(strings.NewReader("abc"), readerFunc(func([]byte) (int, error) {
			<-in.Context().Done()
			return 0, in.Context().Err()
		})))(in, pass)
	}
	client.Then(stalled, stalled)
	_, err := s.Get(t.Context(), "a", 10)
	wantErr(t, err, blob.ErrUnavailable, "after 3 of 10 bytes")

	ctx, cancel := context.WithCancel(t.Context())
	client.Then(stalled)
	slow := storeOf(t, client, bucket.Options{Stall: time.Hour})
	r, size, err := slow.Open(ctx, "a")
	if err != nil || size != 10 {
		t.Fatalf("open: size %d, %v", size, err)
	}
	cancel()
	if _, err := io.ReadAll(r); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the caller's own end", err)
	}
	_ = r.Close()
}

func TestLinks(t *testing.T) {
	client := &faults.Client{}
	now := time.Date(2026, 7, 28, 12, 0, 0, 900_000_000, time.UTC)
	s := storeOf(t, client, bucket.Options{Clock: func() time.Time { return now }})
	link, expires, err := s.SignedURL(t.Context(), "ws/att-1", blob.DownloadOptions{Filename: "a.pdf"})
	if err != nil {
		t.Fatal(err)
	}
	client.WantOps(t) // no request is made
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	if u.Path != "/mail/ws/att-1" || expires != now.Truncate(time.Second).Add(300*time.Second) {
		t.Errorf("path %s, expires %v", u.Path, expires)
	}
	for name, want := range map[string]string{
		"X-Amz-Date": "20260728T120000Z", "X-Amz-Expires": "300", "X-Amz-Security-Token": "session", "X-Amz-SignedHeaders": "host",
		"response-content-type": "application/octet-stream", "response-content-disposition": blob.Disposition("a.pdf"), "response-cache-control": "no-store",
	} {
		if got := u.Query().Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if strings.Contains(link, "checksum") {
		t.Errorf("the link asks for checksums: %s", link)
	}
}

func TestContextEnds(t *testing.T) {
	s, client := faulty(t)
	for name, call := range map[string]func(context.Context) error{
		put:              func(ctx context.Context) error { return s.Put(ctx, "a", strings.NewReader("x"), 1) },
		get:              func(ctx context.Context) error { _, err := s.Get(ctx, "a", 1); return err },
		"DELETE /mail/a": func(ctx context.Context) error { return s.Delete(ctx, "a") },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		client.Then(faults.Hang(cancel))
		wantErr(t, call(ctx), context.Canceled, "")
		client.WantOps(t, name)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]bucket.Options{
		"no region": {Bucket: "mail", AWS: awsclient.Config{Credentials: at("").Credentials}}, "no bucket": {AWS: at("")},
	} {
		if _, err := bucket.New(o); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
