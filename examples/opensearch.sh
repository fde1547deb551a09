#!/bin/sh
# OpenSearch's walk-through of conversational search, with curl: features, connector, model group, model, pipeline, index,
# a question, a follow-up in a memory, its messages, and the end. In the words of 2.10; the later ones work beside them.
# The model is at OPENAI_URL, under OPENAI_API_KEY: any server with OpenAI's chat completions.
set -e
parley=${PARLEY_URL:-http://localhost:8108}
llm=${OPENAI_URL:-https://api.openai.com}

# Sends JSON. $1: method, $2: path, $3: body
send() {
  curl -sS --fail-with-body -u "somebody:${PARLEY_KEY:-xyz}" -H 'Content-Type: application/json' \
    -X "$1" "$parley$2" ${3:+-d "$3"}
  echo
}
# The value of a field. $1: its name
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

send PUT /_cluster/settings '{ "persistent": { "plugins.ml_commons.memory_feature_enabled": true } }'
send PUT /_cluster/settings '{ "persistent": { "plugins.ml_commons.rag_pipeline_feature_enabled": true } }'

connector=$(send POST /_plugins/_ml/connectors/_create '{
  "name": "OpenAI Chat Connector", "description": "The connector to a chat model", "version": 2, "protocol": "http",
  "parameters": { "endpoint": "'"${llm#*://}"'", "model": "gpt-3.5-turbo", "temperature": 0 },
  "credential": { "openAI_key": "'"${OPENAI_API_KEY:-none}"'" },
  "actions": [{
    "action_type": "predict", "method": "POST",
    "url": "'"${llm%%://*}"'://${parameters.endpoint}/v1/chat/completions",
    "headers": { "Authorization": "Bearer ${credential.openAI_key}" },
    "request_body": "{ \"model\": \"${parameters.model}\", \"messages\": ${parameters.messages}, \"temperature\": ${parameters.temperature} }"
  }]
}' | field connector_id)
group=$(send POST /_plugins/_ml/model_groups/_register '{
  "name": "walk-through-'$$'", "description": "The walk-through'"'"'s models"
}' | field model_group_id)
task=$(send POST /_plugins/_ml/models/_register '{
  "name": "openAI-gpt-3.5-turbo", "function_name": "remote", "model_group_id": "'"$group"'",
  "description": "test model", "connector_id": "'"$connector"'"
}' | field task_id)
model=$(send GET "/_plugins/_ml/tasks/$task" | field model_id)
send POST "/_plugins/_ml/models/$model/_deploy"

send PUT /_search/pipeline/walk-through '{
  "response_processors": [{ "retrieval_augmented_generation": {
    "tag": "openai_pipeline_demo", "description": "Demo pipeline using OpenAI", "model_id": "'"$model"'",
    "context_field_list": ["text"], "system_prompt": "You are a helpful assistant",
    "user_instructions": "Generate a concise and informative answer in less than 100 words for the given question"
  } }]
}'
curl -sS --fail-with-body -u "somebody:${PARLEY_KEY:-xyz}" -H 'Content-Type: application/x-ndjson' \
  -X POST "$parley/walk-through/_bulk" --data-binary '{ "index": { "_id": "1" } }
{ "text": "Abraham Lincoln was the sixteenth president of the United States." }
{ "index": { "_id": "2" } }
{ "text": "The president lives in the White House." }
'
echo
send GET '/walk-through/_search?search_pipeline=walk-through' '{
  "query": { "match": { "text": "Abraham Lincoln" } },
  "ext": { "generative_qa_parameters": { "llm_model": "gpt-3.5-turbo", "llm_question": "Was Abraham Lincoln a good politician" } }
}'

memory=$(send POST /_plugins/_ml/memory/conversation '{ "name": "Conversation about Lincoln" }' | field conversation_id)
for question in 'Was Abraham Lincoln a good politician' 'When was he president'; do
  send GET '/walk-through/_search?search_pipeline=walk-through' '{
    "query": { "match": { "text": "Abraham Lincoln president" } },
    "ext": { "generative_qa_parameters": {
      "llm_model": "gpt-3.5-turbo", "llm_question": "'"$question"'", "conversation_id": "'"$memory"'",
      "context_size": 5, "interaction_size": 5, "timeout": 15
    } }
  }'
done
send GET "/_plugins/_ml/memory/conversation/$memory"
send DELETE "/_plugins/_ml/memory/conversation/$memory"
