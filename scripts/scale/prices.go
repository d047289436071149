package main

// AWS's list prices in USD, without free tiers, and its default limits, as known when this was written; look them up before you rely on
// them. Prices differ by up to a fifth between regions.
const (
	priceRegion = "us-east-1"
	priceDate   = "November 2026"

	lambdaRequest  = 0.20 / 1e6
	lambdaGBSecond = 0.0000133334 // arm64
	dynamoRead     = 0.125 / 1e6  // on demand; a unit: 4 KB read strongly
	dynamoWrite    = 0.625 / 1e6  // on demand; a unit: 1 KB; a transaction takes two
	s3Put          = 0.005 / 1e3
	s3Get          = 0.0004 / 1e3
	sqsRequest     = 0.40 / 1e6
	snsPublish     = 0.50 / 1e6 // its delivery to SQS is free
	sesMail        = 0.10 / 1e3
	sesChunk       = 0.09 / 1e3 // of 256 KB, received; a small mail is counted as one here, which is the most that it can be
	logGB          = 0.50       // ingested
	metricMonth    = 0.30       // a metric
	outGB          = 0.09       // to the internet
	month          = 30 * 24 * 3600.0

	accountConcurrency = 1000   // Lambda; raised by a request
	tableUnits         = 40_000 // read, and write, units a second of one table
	freshReads         = 12_000 // units a second that a new on-demand table takes at once; then twice the last peak
	freshWrites        = 4_000
	partitionReads     = 3_000.0 // units a second of one partition; fixed
	partitionWrites    = 1_000.0 // fixed
	bucketPuts         = 3_500   // a second and prefix; S3 splits prefixes as load grows
	bucketGets         = 5_500
	httpAPIThrottle    = 100 // template.yaml: DefaultRouteSettings
	background         = 5   // template.yaml: BackgroundConcurrency
)

// What can't be counted without an account: times. They are round figures of what is commonly seen inside one region, and the first thing
// to replace by one's own (Latency of the metrics, and Lambda's REPORT lines).
const (
	tripMS    = 4.0  // a request to DynamoDB
	getMS     = 15.0 // a small object of S3
	putMS     = 25.0
	sendMS    = 8.0 // to SQS
	apiMS     = 2.0 // everything else of a warm call, the runtime's own part too
	parseMS   = 12.0
	inboundMS = 3.0
	apiGB     = 0.5 // template.yaml
	workerGB  = 1.0
	inboundGB = 0.5
	batch     = 10 // template.yaml: messages an invocation takes
	parallel  = 8  // of them at once (shared/app/worker)

	lineBytes   = 450.0 // the log line of a call
	metricBytes = 700.0 // a line of metrics: at most one a second and method on an instance
	replyBytes  = 9_000.0
	metrics     = 40 // of the three functions together
	peak        = 5  // what a busy minute has over the day's mean, for mail
)
