// Calls Meilisearch's JavaScript client and prints what it gives, call by call.
//
// Standard input: {"host", "key", "calls": [{"index" or absent, "method", "arguments"}]}
// Standard output: [{"value"} or {"error": {"name", "message", "status", "code", "type"}}]
import { text } from "node:stream/consumers";
import { Meilisearch } from "meilisearch";

const { host, key, calls } = JSON.parse(await text(process.stdin));
const client = new Meilisearch({ host, apiKey: key });
const outcomes = [];
for (const call of calls) {
  const target = call.index === undefined ? client : client.index(call.index);
  try {
    outcomes.push({ value: await target[call.method](...call.arguments) });
  } catch (error) {
    outcomes.push({
      error: {
        name: error.name,
        message: error.message,
        status: error.response?.status,
        code: error.cause?.code,
        type: error.cause?.type,
      },
    });
  }
}
process.stdout.write(JSON.stringify(outcomes));
