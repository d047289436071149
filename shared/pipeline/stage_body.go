package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// bodies keeps a small body in the row and a large one in a blob under a key of this pipeline version.
func (r *run) bodies(ctx context.Context) error {
	if r.reading == nil {
		return nil
	}
	encoded, err := json.Marshal(r.reading.Body)
	if err != nil {
		return err
	}
	if len(encoded) <= r.w.opts.MaxBody {
		r.body = &r.reading.Body
		return nil
	}
	key := fmt.Sprintf("body/%s/%d", strings.ToLower(r.email.ID), Version)
	if err := r.w.deps.Blobs.Put(ctx, key, bytes.NewReader(encoded), int64(len(encoded))); err != nil {
		return blobFailure(err)
	}
	r.email.BodyKey = key
	return nil
}
