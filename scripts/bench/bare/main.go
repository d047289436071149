// Command bare is the floor of every Lambda function in Go: aws-lambda-go with a handler that answers the same to everything.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		return events.LambdaFunctionURLResponse{
			StatusCode: 200, Headers: map[string]string{"content-type": "application/json"},
			Body: `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[{"type":"text","text":"{\"data\":{}}"}]}}`,
		}, nil
	})
}
