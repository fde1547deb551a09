#!/bin/sh
# curl alone: a streamed answer as server-sent events, and the same from an assistant in OpenAI's words.
parley=${PARLEY_URL:-http://localhost:8108}
key="Authorization: Bearer ${PARLEY_KEY:-xyz}"

curl -sN "$parley/conversations" -H "$key" -H 'Accept: text/event-stream' -d '{
  "question": "How does Parley store history?", "model": "docs", "collections": ["docs"]
}'
curl -sN "$parley/v1/chat/completions" -H "$key" -d '{
  "model": "default", "stream": true,
  "messages": [{ "role": "user", "content": "How does Parley store history?" }]
}'
