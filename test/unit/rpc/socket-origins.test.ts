/** Which origins may open a WebSocket: the server's own, and those of `ws-origins`. */
import { describe, expect, it } from "@jest/globals";
import { isOwnOrigin, isSocketOrigin } from "../../../node/rpc/socket-origins.js";

describe("the server's own origin", () => {
  it.each([
    ["http://127.0.0.1:8546", "127.0.0.1:8546", true],
    ["https://10.1.2.3:8546", "10.1.2.3:8546", true],
    ["http://127.0.0.1", "127.0.0.1", true],
    ["https://127.0.0.1", "127.0.0.1:443", true],
    ["http://[::1]:8546", "[::1]:8546", true],
    ["http://localhost:26657", "localhost:26657", true],
    ["http://LocalHost:26657", "localhost:26657", true],
    // A name that its owner has made to mean this machine.
    ["http://evil.example:8546", "evil.example:8546", false],
    ["http://localhost.evil.example:8546", "localhost.evil.example:8546", false],
    ["http://127.0.0.1.evil.example:8546", "127.0.0.1.evil.example:8546", false],
    // Pages of other servers on the same machine.
    ["http://127.0.0.1:3000", "127.0.0.1:8546", false],
    ["http://localhost:8546", "127.0.0.1:8546", false],
    ["http://127.0.0.1:8546", undefined, false],
    ["http://127.0.0.1:8546", "evil@127.0.0.1:8546", false],
    ["file://127.0.0.1:8546", "127.0.0.1:8546", false],
    ["null", "null", false],
    ["", "", false],
  ])("%j of a request to %j: %j", (origin, host, isOwn) => {
    expect(isOwnOrigin(origin, host)).toBe(isOwn);
  });
});

describe("ws-origins", () => {
  it.each([
    ["localhost", "http://localhost:5173", true],
    ["localhost", "https://localhost", true],
    ["127.0.0.1", "http://127.0.0.1:3000", true],
    ["http://localhost", "http://localhost:3000", true],
    ["http://localhost", "https://localhost:3000", false],
    ["localhost:3000", "http://localhost:3000", true],
    ["localhost:3000", "http://localhost:3001", false],
    ["https://Front.Example/", "https://front.example", true],
    ["front.example", "https://front.example.evil", false],
    ["front.example", "https://a.front.example", false],
    ["[::1]", "http://[::1]:3000", true],
    ["*", "null", true],
    ["", "http://localhost", false],
    ["http://", "http://localhost", false],
    ["null", "null", true],
  ])("%j and a page of %j: %j", (entry, origin, isAllowed) => {
    expect(isSocketOrigin(origin, ["https://other.example", entry])).toBe(isAllowed);
  });
});
