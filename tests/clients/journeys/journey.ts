// A customer's work with the client that openapi-generator makes for TypeScript; see test_openapi_generator.py.
import {
  AnalyticsApi, Configuration, DocumentsApi, KeysApi, ModelErrorFromJSON, ResponseError, SearchApi, SitesApi,
} from "./client/index.js";

declare const process: { argv: string[] };

const [basePath, privateToken] = process.argv.slice(2) as [string, string];
const server = new Configuration({ basePath, accessToken: privateToken });
const documents = new DocumentsApi(server);

function check(condition: boolean, what: unknown): asserts condition {
  if (!condition) throw new Error(JSON.stringify(what));
}

async function refusal(call: Promise<unknown>) {
  try {
    await call;
  } catch (error) {
    if (error instanceof ResponseError) return ModelErrorFromJSON(await error.response.json());
    throw error;
  }
  throw new Error("it was not refused");
}

const { site } = await new SitesApi(server).createSite({ siteCreate: { name: "Museum", url: "https://museum.example/" } });
const { key, apiKey } = await new KeysApi(server).createKey({
  siteId: site.id, keyCreate: { name: "Search page", type: "search" },
});
check(key.type === "search" && key.expiresAt === null, key);
const visitor = new SearchApi(new Configuration({ basePath, accessToken: apiKey }));

const indexed = await documents.indexDocuments({
  bulk: {
    siteId: site.id,
    documents: [
      { id: "hours", title: "Opening hours", content: "We open at nine.", url: "/hours", section: "visit" },
      { id: "news", title: "News", content: "New opening hours.", url: "/news", date: "2024-05-01" },
    ],
  },
});
check(indexed.created === 2, indexed);

const found = await visitor.search({ q: "opning hours", filters: "section = visit", facets: "section", highlight: true });
const hit = found.results.hits[0];
check(found.results.hits.length === 1 && hit?.id === "hours" && hit["section"] === "visit", found);
check(found.results.matched === "corrected" && found.results.facetDistribution?.["section"]?.["visit"] === 1, found);
const byBody = await visitor.searchByBody({ searchBody: { q: "hours", facets: ["section"] } });
check(byBody.results.hits.length === 2, byBody);

const analytics = await new AnalyticsApi(server).showAnalytics({ period: "7d", siteId: site.id });
check(analytics.series.length === 7 && analytics.previous.clickThroughRate === null, analytics);

const broken = await refusal(visitor.search({ q: "hours", filters: "section visit" }));
check(broken.error === "invalid_filter" && broken.details?.[0]?.position === 8, broken);

const deleted = await documents.deleteDocument({ siteId: site.id, destroy: { id: "hours" } });
check(deleted.deleted === 1, deleted);
const again = await refusal(documents.deleteDocument({ siteId: site.id, destroy: { id: "hours" } }));
check(again.error === "document_not_found", again);
check((await new SitesApi(server).deleteSite({ siteId: site.id })).success, site);
console.log("done");
