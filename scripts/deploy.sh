#!/usr/bin/env bash
# Builds and deploys the stack of samconfig.toml, writes the secrets where they hold only what CloudFormation generated, and sets
# the public URL once it is known. It can be run again at any time: what is done already is left alone. docs/deploy.md explains it.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "deploy: $*" >&2
  exit 1
}

for tool in sam aws go; do
  command -v "$tool" >/dev/null || fail "$tool is not installed; see docs/deploy.md, \"What you need\"."
done
[ -f samconfig.toml ] || fail "there is no samconfig.toml: cp samconfig.toml.example samconfig.toml, and put your domain in it."
setting() { sed -n "s/^ *$1 *= *\"\([^\"]*\)\".*/\1/p" samconfig.toml | head -n 1; }
stack=$(setting stack_name)
region=$(setting region)
[ -n "$stack" ] && [ -n "$region" ] || fail "samconfig.toml names no stack_name or no region."
export AWS_REGION=$region AWS_DEFAULT_REGION=$region AWS_PAGER=
aws sts get-caller-identity >/dev/null || fail "the aws command has no credentials that work: aws configure, or aws sso login."

output() {
  aws cloudformation describe-stacks --stack-name "$stack" \
    --query "Stacks[0].Outputs[?OutputKey=='$1'].OutputValue | [0]" --output text
}

# A secret is written once: its value is recognised by its form, never shown, and never on a disk.
write_secret() { # output key, what, form
  local arn
  arn=$(output "$1")
  if aws secretsmanager get-secret-value --secret-id "$arn" --query SecretString --output text | grep -q "$3"; then
    return
  fi
  go run ./functions/local secret new "$2" |
    aws secretsmanager put-secret-value --secret-id "$arn" --secret-string file:///dev/stdin >/dev/null
  echo "Wrote the secret $1."
}

# The function URL is known only when it exists, and a template can't name it in the function's own variables.
set_public_url() { # origin
  local parameters=("ParameterKey=PublicUrl,ParameterValue=$1") key
  for key in $(aws cloudformation describe-stacks --stack-name "$stack" --query 'Stacks[0].Parameters[].ParameterKey' --output text); do
    [ "$key" = PublicUrl ] || parameters+=("ParameterKey=$key,UsePreviousValue=true")
  done
  aws cloudformation update-stack --stack-name "$stack" --use-previous-template \
    --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND --parameters "${parameters[@]}" >/dev/null
  aws cloudformation wait stack-update-complete --stack-name "$stack"
  echo "The public URL is $1."
}

sam build
sam deploy --no-fail-on-empty-changeset
write_secret RootSecretsArn roots '^[a-z0-9_-]*:'
write_secret KeySetArn keys '^{'
if [[ $(output McpUrl) != https://* ]]; then
  origin=$(output FunctionUrl)
  [ "$origin" != None ] || origin=$(output HttpApiUrl)
  set_public_url "${origin%/}"
fi
cat <<END

Deployed. MCP URL: $(output McpUrl)

Next, as docs/deploy.md says from "DNS" on:
  MX record of your mail domain:  $(output MailRecord)
  CNAME records:                  $(output DkimRecord1)
                                  $(output DkimRecord2)
                                  $(output DkimRecord3)
  mail is refused until you run:  $(output ActivateRuleSet)
END
