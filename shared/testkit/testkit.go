// Package testkit is what tests share: Lambda's Runtime API in miniature, front doors that turn HTTP into events, MCP requests
// of both eras. Tests only: nothing that ships imports it.
package testkit
