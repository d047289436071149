package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// Secrets is Secrets Manager: what GetSecretValue, PutSecretValue and UpdateSecretVersionStage do of it.
type Secrets struct {
	mu     sync.Mutex
	kept   map[string]*secret // by name; guarded by mu
	serial int                // guarded by mu
}

type secret struct {
	texts  map[string]string // by version
	stages map[string]string // versions by label
}

const labelCurrent = "AWSCURRENT"

// NewSecrets makes secrets with these texts.
func NewSecrets(texts map[string]string) *Secrets {
	s := &Secrets{kept: map[string]*secret{}}
	for name, text := range texts {
		s.Set(name, text)
	}
	return s
}

// Set makes a text the current version of a secret.
func (s *Secrets) Set(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[name] == nil {
		s.kept[name] = &secret{texts: map[string]string{}, stages: map[string]string{}}
	}
	s.kept[name].stages[labelCurrent] = s.add(s.kept[name], text)
}

func (s *Secrets) add(k *secret, text string) string {
	s.serial++
	version := fmt.Sprintf("%08d-0000-0000-0000-000000000000", s.serial)
	k.texts[version] = text
	return version
}

// Current is the text of a secret's current version.
func (s *Secrets) Current(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[name]
	return k.texts[k.stages[labelCurrent]]
}

// ServeHTTP answers one request of the JSON protocol.
func (s *Secrets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var in struct {
		ID            string `json:"SecretId"` //nolint:tagliatelle // AWS's name
		SecretString  string
		VersionStages []string
		VersionStage  string
		MoveTo        string `json:"MoveToVersionId"`     //nolint:tagliatelle // AWS's name
		RemoveFrom    string `json:"RemoveFromVersionId"` //nolint:tagliatelle // AWS's name
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, "SerializationException")
		return
	}
	k := s.kept[in.ID]
	if k == nil {
		refuse(w, "ResourceNotFoundException")
		return
	}
	switch _, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); op {
	case "GetSecretValue":
		version := k.stages[labelCurrent]
		reply(w, map[string]string{"Name": in.ID, "VersionId": version, "SecretString": k.texts[version]})
	case "PutSecretValue":
		version := s.add(k, in.SecretString)
		for _, stage := range in.VersionStages {
			k.stages[stage] = version
		}
		reply(w, map[string]any{"Name": in.ID, "VersionId": version, "VersionStages": in.VersionStages})
	case "UpdateSecretVersionStage":
		if k.stages[in.VersionStage] != in.RemoveFrom || k.texts[in.MoveTo] == "" {
			refuse(w, "InvalidParameterException")
			return
		}
		k.stages[in.VersionStage] = in.MoveTo
		reply(w, map[string]string{"Name": in.ID})
	default:
		refuse(w, "AccessDeniedException")
	}
}
