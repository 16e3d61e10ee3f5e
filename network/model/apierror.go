package model

import (
	"net/http"
	"strconv"
	"time"
)

// apiError is an error answer: a status, the API's body, and headers that steer clients.
type apiError struct {
	status  int
	kind    string
	message string
	header  map[string]string
}

func badRequest(message string) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: "invalid_request_error", message: message}
}

// final marks the error as one that clients shall not retry.
func (e *apiError) final() *apiError {
	e.header = map[string]string{"x-should-retry": "false"}
	return e
}

// scripted is the answer for a failure in a script.
func (f *Failure) scripted() *apiError {
	e := &apiError{status: f.Status, kind: f.Type, message: f.Message, header: map[string]string{}}
	if f.RetryAfter > 0 {
		e.header["retry-after"] = strconv.Itoa(int(f.RetryAfter.Round(time.Second).Seconds()))
	}
	if f.Retry != nil {
		e.header["x-should-retry"] = strconv.FormatBool(*f.Retry)
	}
	return e
}

type errorBody struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

func (e *apiError) write(w http.ResponseWriter) {
	body := errorBody{Type: "error", RequestID: w.Header().Get("request-id")}
	body.Error.Type, body.Error.Message = e.kind, e.message
	for key, value := range e.header {
		w.Header().Set(key, value)
	}
	writeJSON(w, e.status, body)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	w.Write(compactJSON(body)) // a client that has gone needs no answer
}
