// Calls Algolia's client and prints what each call gives.
//
// Standard input: {"host", "protocol", "key", "calls": [{"method", "argument"}]}
// Standard output: [{"value"} or {"error": {"message", "status"}}]
import { text } from "node:stream/consumers";
import { algoliasearch } from "algoliasearch";

const { host, protocol, key, calls } = JSON.parse(await text(process.stdin));
const client = algoliasearch("any", key, { hosts: [{ url: host, accept: "readWrite", protocol }] });
const outcomes = [];
for (const { method, argument } of calls) {
  try {
    outcomes.push({ value: await client[method](argument) });
  } catch (error) {
    outcomes.push({ error: { message: error.message, status: error.status } });
  }
}
process.stdout.write(JSON.stringify(outcomes));
