"""What opensearch-py does against a Parley. Run by opensearch-py.mjs: `opensearch-py.py URL MODEL_HOST`."""

import sys

from opensearchpy import OpenSearch, exceptions, helpers

url, model = sys.argv[1:3]
failed = 0


def client(**options):
    options = {"http_auth": ("admin", "xyz"), "http_compress": True, "max_retries": 0, "timeout": 30, **options}
    return OpenSearch(hosts=[url], **options)


def check(name, work):
    global failed
    try:
        work()
        print(f"ok    {name}")
    except Exception as error:
        failed += 1
        print(f"FAIL  {name}: {type(error).__name__}: {error}")


def same(a, b):
    if a != b:
        raise AssertionError(f"{a!r} is not {b!r}")


def raises(kind, work, **fields):
    try:
        work()
    except kind as error:
        for field, value in fields.items():
            same(getattr(error, field), value)
        return error
    raise AssertionError(f"no {kind.__name__}")


api = client()
books = [{"_index": "py-books", "_id": str(n), "title": f"Book {n}", "year": 1900 + n} for n in range(1, 61)]


def info():
    same(api.info()["version"]["distribution"], "opensearch")
    same(api.ping(), True)
    same(api.cluster.health()["status"], "green")


def auth():
    raises(exceptions.AuthenticationException, lambda: client(http_auth=("admin", "wrong")).info(), status_code=401)


def indices():
    api.indices.create(index="py-made", body={"mappings": {"properties": {"k": {"type": "keyword"}}}})
    same(api.indices.exists(index="py-made"), True)
    error = raises(exceptions.RequestError, lambda: api.indices.create(index="py-made"), status_code=400)
    same(error.error, "resource_already_exists_exception")
    api.indices.put_mapping(index="py-made", body={"properties": {"n": {"type": "long"}}})
    same(set(api.indices.get_mapping(index="py-made")["py-made"]["mappings"]["properties"]), {"k", "n"})
    api.indices.put_settings(index="py-made", body={"index.refresh_interval": "2s"})
    same(api.indices.get_settings(index="py-made")["py-made"]["settings"]["index"]["refresh_interval"], "2s")
    api.indices.put_alias(index="py-made", name="py-alias")
    same(api.indices.exists_alias(name="py-alias"), True)
    same(list(api.indices.get_alias(name="py-alias")), ["py-made"])
    api.indices.delete_alias(index="py-made", name="py-alias")
    same([each["index"] for each in api.cat.indices(index="py-made", format="json")], ["py-made"])
    api.indices.delete(index="py-made")
    raises(exceptions.NotFoundError, lambda: api.indices.delete(index="py-made"), error="index_not_found_exception")


def documents():
    same(api.index(index="py-docs", id="ä/1", body={"t": "Grüße 🐟"}, refresh=True)["result"], "created")
    same(api.get(index="py-docs", id="ä/1")["_source"], {"t": "Grüße 🐟"})
    same(api.exists(index="py-docs", id="ä/1"), True)
    api.update(index="py-docs", id="ä/1", body={"doc": {"n": 1}})
    same(api.get_source(index="py-docs", id="ä/1"), {"t": "Grüße 🐟", "n": 1})
    raises(exceptions.ConflictError, lambda: api.create(index="py-docs", id="ä/1", body={}), status_code=409)
    same(api.mget(index="py-docs", body={"ids": ["ä/1", "no"]})["docs"][1]["found"], False)
    same(api.delete(index="py-docs", id="ä/1")["result"], "deleted")
    raises(exceptions.NotFoundError, lambda: api.get(index="py-docs", id="ä/1"), status_code=404)
    same(api.delete(index="py-docs", id="ä/1", ignore=404)["result"], "not_found")


def bulk():
    same(helpers.bulk(api, books, chunk_size=25, refresh=True), (60, []))
    outcomes = list(helpers.streaming_bulk(api, [{**books[0], "_op_type": "create"}], raise_on_error=False))
    same([(ok, item["create"]["status"]) for ok, item in outcomes], [(False, 409)])
    same(all(ok for ok, _ in helpers.parallel_bulk(api, books[:10], thread_count=2, chunk_size=5)), True)
    same(api.count(index="py-books")["count"], 60)


def search():
    found = api.search(index="py-books", body={"query": {"range": {"year": {"gt": 1950}}}, "sort": ["year"], "size": 3})
    same(found["hits"]["total"]["value"], 10)
    same([hit["_id"] for hit in found["hits"]["hits"]], ["51", "52", "53"])
    same(api.search(index="py-books", q="title:book", size=1)["hits"]["total"]["value"], 60)
    same(api.search(index="py-books", params={"size": 0, "track_total_hits": True})["hits"]["hits"], [])
    both = api.msearch(body=[{"index": "py-books"}, {"size": 0}, {"index": "py-none"}, {}])["responses"]
    same([each["status"] for each in both], [200, 404])
    error = raises(exceptions.RequestError, lambda: api.search(index="py-books", body={"sort": ["nope"]}))
    same(error.error, "search_phase_execution_exception")
    same("No mapping found for [nope]" in str(error), True)
    raises(exceptions.NotFoundError, lambda: api.search(index="py-none"), error="index_not_found_exception")


def scan():
    every = sorted(hit["_id"] for hit in helpers.scan(api, index="py-books", size=1))
    same(every, sorted(hit["_id"] for hit in api.search(index="py-books", body={"size": 100})["hits"]["hits"]))
    same(len(every) > 1, True)


ML = "/_plugins/_ml"


def send(method, path, body=None, params=None):
    return api.transport.perform_request(method, path, body=body, params=params)


def memory():
    made = send("POST", f"{ML}/memory/conversation", {"name": "Tutorial"})["conversation_id"]
    for n in range(3):
        body = {"input": f"q{n}", "prompt": "p", "response": f"a{n}", "origin": "py", "additional_info": "{}"}
        send("POST", f"{ML}/memory/conversation/{made}", body)
    page = send("GET", f"{ML}/memory/conversation/{made}", params={"max_results": 2})
    same([each["input"] for each in page["interactions"]], ["q2", "q1"])
    same(page["next_token"], 2)
    listed = send("GET", f"{ML}/memory/{made}/messages")["messages"]
    same([each["response"] for each in listed], ["a0", "a1", "a2"])
    same(send("POST", f"{ML}/memory/{made}/_search", {"query": {"match": {"input": "q1"}}})["hits"]["total"]["value"], 1)
    same(send("DELETE", f"{ML}/memory/conversation/{made}"), {"success": True})
    raises(exceptions.NotFoundError, lambda: send("GET", f"{ML}/memory/{made}/messages"), status_code=404)


def answer():
    connector = {
        "name": "Chat", "description": "Chat", "version": 1, "protocol": "http",
        "parameters": {"endpoint": model, "model": "gpt-3.5-turbo"},
        "credential": {"openAI_key": "sk-secret"},
        "actions": [{
            "action_type": "predict", "method": "POST", "url": "http://${parameters.endpoint}/v1/chat/completions",
            "headers": {"Authorization": "Bearer ${credential.openAI_key}"},
            "request_body": '{"model": "${parameters.model}", "messages": ${parameters.messages}}',
        }],
    }  # fmt: skip
    made = send("POST", f"{ML}/connectors/_create", connector)["connector_id"]
    body = {"name": "chat", "function_name": "remote", "connector_id": made}
    task = send("POST", f"{ML}/models/_register", body)["task_id"]
    llm = send("GET", f"{ML}/tasks/{task}")["model_id"]
    send("POST", f"{ML}/models/{llm}/_deploy")
    rag = {"retrieval_augmented_generation": {"model_id": llm, "context_field_list": ["title"]}}
    send("PUT", "/_search/pipeline/py-rag", {"response_processors": [rag]})
    chat = send("POST", f"{ML}/memory", {"name": "Chat"})["memory_id"]
    asked = {"llm_model": "gpt-3.5-turbo", "llm_question": "Which book?", "memory_id": chat, "timeout": 20}
    reply = api.search(
        index="py-books",
        body={"query": {"match": {"title": "book"}}, "ext": {"generative_qa_parameters": asked}},
        params={"search_pipeline": "py-rag"},
    )
    same(reply["ext"]["retrieval_augmented_generation"]["answer"], "Lincoln was. [1]")
    messages = send("GET", f"{ML}/memory/{chat}/messages")["messages"]
    same([each["input"] for each in messages], ["Which book?"])


check("the server", info)
check("a wrong password", auth)
check("indices", indices)
check("documents", documents)
check("bulk helpers", bulk)
check("searches", search)
check("helpers.scan", scan)
check("memory through perform_request", memory)
check("an answered search", answer)
sys.exit(1 if failed else 0)
