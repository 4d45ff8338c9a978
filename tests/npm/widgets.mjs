// Drives InstantSearch's widgets over Meilisearch's adapter or Algolia's client, without a browser, and prints what they
// show.
//
// Standard input: {"host" and "options", or "algolia": {"host", "protocol"}; "key", "index", "configure", "facets",
// "orders", "templates": {field: "highlight" or "snippet"}, "steps": [{"widget", "value", "attribute"}]}
// Standard output: [{"hits", "total", "facets", "pages", "page", "shown"}], one after the start and one after each step
import { text } from "node:stream/consumers";
import { instantMeiliSearch } from "@meilisearch/instant-meilisearch";
import { liteClient } from "algoliasearch/lite";
import instantsearchModule from "instantsearch.js";
import connectors from "instantsearch.js/cjs/connectors/index.js";

const instantsearch = instantsearchModule.default ?? instantsearchModule;
const { connectConfigure, connectHits, connectPagination, connectRefinementList, connectSearchBox, connectSortBy } =
  connectors;
const wish = JSON.parse(await text(process.stdin));
const { searchClient } = wish.algolia
  ? { searchClient: liteClient("any", wish.key, { hosts: [{ ...wish.algolia, url: wish.algolia.host, accept: "readWrite" }] }) }
  : instantMeiliSearch(wish.host, wish.key, wish.options);
const search = instantsearch({ indexName: wish.index, searchClient });
const shown = { facets: {} };
let answered = () => {};
let failed = () => {};

search.addWidgets([
  connectConfigure(() => {})({ searchParameters: wish.configure }),
  connectSearchBox((state) => (shown.searchBox = state))({}),
  connectHits((state) => (shown.hits = state))({}),
  connectPagination((state) => (shown.pagination = state))({}),
  connectSortBy((state) => (shown.sortBy = state))({
    items: [{ label: "best", value: wish.index }, ...wish.orders.map((value) => ({ label: value, value }))],
  }),
  ...wish.facets.map((attribute) =>
    connectRefinementList((state) => {
      shown.facets[attribute] = state;
      if (state.isFromSearch) answered();
    })({ attribute, operator: "or" }),
  ),
]);

search.on("error", (error) => failed(error));
// InstantSearch also draws when it asks; only then is its status another one.
search.on("render", () => search.status === "idle" && shown.hits.results && answered());

function nextAnswer() {
  return new Promise((resolve, reject) => {
    answered = resolve;
    failed = reject;
  });
}

function picture() {
  const items = (state) => Object.fromEntries(state.items.map((item) => [item.value, item.count]));
  return {
    hits: shown.hits.items.map((hit) => ({ ...hit })),
    total: shown.pagination.nbHits,
    pages: shown.pagination.nbPages,
    page: shown.pagination.currentRefinement,
    shown: shown.hits.items.map((hit) => {
      const parts = Object.entries(wish.templates ?? {});
      return Object.fromEntries(parts.map(([attribute, helper]) => [attribute, instantsearch[helper]({ attribute, hit })]));
    }),
    facets: Object.fromEntries(wish.facets.map((name) => [name, items(shown.facets[name])])),
  };
}

const actions = {
  query: ({ value }) => shown.searchBox.refine(value),
  facet: ({ attribute, value }) => shown.facets[attribute].refine(value),
  page: ({ value }) => shown.pagination.refine(value),
  order: ({ value }) => shown.sortBy.refine(value),
  searchFacet: ({ attribute, value }) => shown.facets[attribute].searchForItems(value),
};

const pictures = [];
let ready = nextAnswer();
search.start();
await ready;
pictures.push(picture());
for (const step of wish.steps) {
  ready = nextAnswer();
  actions[step.widget](step);
  await ready;
  pictures.push(picture());
}
process.stdout.write(JSON.stringify(pictures));
search.dispose();
