"""
What LangChain, LlamaIndex and Haystack do against a Parley with their defaults. Run by opensearch-py.mjs:
`opensearch-libraries.py URL`.
"""

import hashlib
import sys
import warnings

warnings.simplefilter("ignore")

from haystack import Document as HaystackDocument
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.components.retrievers.opensearch import OpenSearchBM25Retriever, OpenSearchEmbeddingRetriever
from haystack_integrations.document_stores.opensearch import OpenSearchDocumentStore
from langchain_community.vectorstores import OpenSearchVectorSearch
from langchain_core.embeddings import DeterministicFakeEmbedding
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import MetadataMode, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQueryMode
from llama_index.vector_stores.opensearch import OpensearchVectorClient, OpensearchVectorStore

url = sys.argv[1]
failed = 0
AUTH = ("admin", "xyz")
TEXTS = ["The lighthouse was built in 1880.", "Backups go to a remote repository.", "Cats sleep for sixteen hours."]


def check(name, work):
    global failed
    try:
        work()
        print(f"ok    {name}")
    except Exception as error:
        failed += 1
        print(f"FAIL  {name}: {type(error).__name__}: {str(error)[:300]}")


def same(a, b):
    if a != b:
        raise AssertionError(f"{a!r} is not {b!r}")


def langchain():
    store = OpenSearchVectorSearch.from_texts(
        TEXTS,
        DeterministicFakeEmbedding(size=32),
        metadatas=[{"number": number} for number in range(3)],
        ids=["a", "b", "c"],
        opensearch_url=url,
        http_auth=AUTH,
        index_name="langchain",
    )
    first = lambda **options: store.similarity_search_with_score(TEXTS[2], k=2, **options)[0]
    for options in (
        {},
        {"search_type": "script_scoring", "space_type": "l2"},
        {"search_type": "painless_scripting"},
        {"efficient_filter": {"term": {"metadata.number": 2}}},
        {"search_type": "painless_scripting", "pre_filter": {"terms": {"metadata.number": [1, 2]}}},
    ):
        document, score = first(**options)
        same((document.page_content, document.metadata, score), (TEXTS[2], {"number": 2}, 1))
    same(len(store.similarity_search_with_score(TEXTS[2], k=3, score_threshold=0.9)), 1)
    store.delete(["c"])
    same(len(store.similarity_search(TEXTS[2], k=3)), 2)
    store.delete_index()


class Hashes(MockEmbedding):
    """The same vector for the same text."""

    def _get_text_embedding(self, text):
        return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()]

    def _get_query_embedding(self, query):
        return self._get_text_embedding(query)


def llama_index():
    client = OpensearchVectorClient(url, "llama-index", 32, http_auth=AUTH)
    store = OpensearchVectorStore(client)
    index = VectorStoreIndex.from_documents(
        [Document(text=text, doc_id=str(n), metadata={"who": "ab"[n % 2]}) for n, text in enumerate(TEXTS)],
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=Hashes(embed_dim=32),
    )

    def found(question, who=None, **options):
        filters = who and MetadataFilters(filters=[MetadataFilter(key="who", value=who)])
        retriever = index.as_retriever(similarity_top_k=3, filters=filters, **options)
        return [node.text for node in retriever.retrieve(question)]

    question = TextNode(text=TEXTS[2], metadata={"who": "a"}).get_content(metadata_mode=MetadataMode.EMBED)
    same(found(question)[0], TEXTS[2])
    same(found(question, "b"), [TEXTS[1]])
    same(found("cats", vector_store_query_mode=VectorStoreQueryMode.TEXT_SEARCH), [TEXTS[2]])
    store.delete(ref_doc_id="2")
    same(sorted(found(question)), sorted(TEXTS[:2]))
    store.clear()
    same(found(question), [])


def haystack():
    store = OpenSearchDocumentStore(hosts=url, index="haystack", embedding_dim=3, http_auth=AUTH)
    vectors = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    documents = [
        HaystackDocument(content=text, embedding=vectors[n], meta={"number": n, "who": "ab"[n % 2]})
        for n, text in enumerate(TEXTS)
    ]
    same(store.write_documents(documents, policy=DuplicatePolicy.OVERWRITE), 3)
    same(store.count_documents(), 3)
    who = {"field": "meta.who", "operator": "==", "value": "a"}
    several = {"operator": "AND", "conditions": [who, {"field": "meta.number", "operator": ">", "value": 1}]}
    same([each.content for each in store.filter_documents(several)], [TEXTS[2]])
    contents = lambda reply: [each.content for each in reply["documents"]]
    words = OpenSearchBM25Retriever(document_store=store)
    same(contents(words.run("remote backups")), [TEXTS[1]])
    same(contents(words.run("remote backups", filters=who)), [])
    same(contents(OpenSearchBM25Retriever(document_store=store, fuzziness="AUTO").run("lighthuose")), [TEXTS[0]])
    near = OpenSearchEmbeddingRetriever(document_store=store, top_k=2)
    same(contents(near.run([0.0, 0.1, 1.0])), [TEXTS[2], TEXTS[1]])
    same(contents(near.run([0.0, 0.1, 1.0], filters=several)), [TEXTS[2]])
    store.delete_documents([documents[0].id])
    same(store.count_documents(), 2)
    same(store.delete_by_filter(filters={"field": "meta.who", "operator": "==", "value": "b"}), 1)


check("LangChain's OpenSearchVectorSearch", langchain)
check("LlamaIndex's OpensearchVectorStore", llama_index)
check("Haystack's OpenSearchDocumentStore", haystack)
sys.exit(1 if failed else 0)
