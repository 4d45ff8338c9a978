// Index, search and delete with the types that openapi-typescript makes; run by test_typescript.py.
import createClient from "openapi-fetch";
import type { components, paths } from "./types.js";

declare const process: { argv: string[] };

const [baseUrl, privateToken, searchToken] = process.argv.slice(2) as [string, string, string];
const server = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${privateToken}` } });
const visitor = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${searchToken}` } });

function check(condition: boolean, what: unknown): asserts condition {
  if (!condition) throw new Error(JSON.stringify(what));
}

const hours: components["schemas"]["Document"] = {
  id: "hours", title: "Opening hours", content: "We open at nine.", url: "/hours", section: "visit",
};

const indexed = await server.POST("/api/v1/index/bulk", {
  body: { documents: [hours, { id: "way", title: "Getting here", content: "Take the tram.", url: "/way" }] },
});
check(indexed.data?.created === 2, indexed);

const found = await visitor.GET("/v1/search", { params: { query: { q: "opning hours", facets: "section", highlight: true } } });
check(found.data !== undefined, found.error);
const hit = found.data.results.hits[0];
check(hit?.title === "Opening hours" && hit.section === "visit", found.data);
check(found.data.results.facetDistribution?.["section"]?.["visit"] === 1, found.data);
check(found.data.remaining_quota.used_today === 1, found.data);

const byBody = await visitor.POST("/v1/search", { body: { q: "tram", sort: ["date:desc"], limit: 5 } });
check(byBody.data?.results.hits[0]?.id === "way", byBody);

const refused = await visitor.GET("/v1/search", { params: { query: { q: "tram", limit: 101 } } });
check(refused.response.status === 400 && refused.error !== undefined, refused);
check("details" in refused.error && refused.error.details?.[0]?.field === "limit", refused.error);

// @ts-expect-error The types know which parameters there are and of what type.
await visitor.GET("/v1/search", { params: { query: { q: 5 } } });
// @ts-expect-error And which fields a document must have.
await server.POST("/api/v1/index/bulk", { body: { documents: [{ id: "x" }] } });

const deleted = await server.DELETE("/api/v1/index/destroy", { body: { id: "hours" } });
check(deleted.data?.deleted === 1, deleted);
const gone = await visitor.GET("/v1/search", { params: { query: { q: "opening hours" } } });
check(gone.data?.results.hits.length === 0, gone);
console.log("done");
