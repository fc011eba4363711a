/**
 * Gives tests CosmJS, loaded by Node itself: it is CommonJS that requires ES modules, which Node
 * 20 can do and jest's own loader cannot. Its hash functions lie in a file that it does not export.
 */
import { createRequire } from "node:module";
import path from "node:path";
import OneRealmEnvironment from "../runner/node-environment.mjs";

const require = createRequire(import.meta.url);

export default class CosmJsEnvironment extends OneRealmEnvironment {
  async setup() {
    await super.setup();
    this.global.cosmjs = require("@cosmjs/tendermint-rpc");
    this.global.cosmjsStargate = require("@cosmjs/stargate");
    this.global.cosmjsSigning = require("@cosmjs/proto-signing");
    const folder = path.dirname(require.resolve("@cosmjs/tendermint-rpc"));
    this.global.cosmjsHasher = require(path.join(folder, "comet38", "hasher.js"));
  }
}
