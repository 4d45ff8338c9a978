// A certified OpenID Connect provider (panva's oidc-provider), where one person may log in with any password.
import { generateKeyPairSync } from "node:crypto";
import { Provider } from "oidc-provider";

const [port, redirect, clientId, clientSecret, where] = process.argv.slice(2);

function key(kid, type, options) {
  const { privateKey } = generateKeyPairSync(type, options);
  return { ...privateKey.export({ format: "jwk" }), kid, use: "sig" };
}

const claims = (sub) => ({ sub, email: `${sub}@example.com`, email_verified: sub !== "eve", name: "Ann Example" });
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [redirect] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  conformIdTokenClaims: where === "userinfo",
  findAccount: (_, sub) => ({ accountId: sub, claims: () => claims(sub) }),
  jwks: { keys: [key("rsa", "rsa", { modulusLength: 2048 }), key("ec", "ec", { namedCurve: "P-256" })] },
  cookies: { keys: ["a key of the tests"] },
  pkce: { required: () => true },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
