/** Which method a REST path means, and what becomes of its parameters. */
import { describe, expect, it } from "@jest/globals";
import { JsonReader } from "../../../../chain/protobuf/json-reader.js";
import { QueryRegistry } from "../../../../node/rpc/cosmos/registry.js";
import { requestOf } from "../../../../node/rpc/rest/request.js";
import { Routes } from "../../../../node/rpc/rest/routes.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";

const types = loadDescriptors();
const nothing = () => ({});
const queries = new QueryRegistry(
  types,
  Object.fromEntries(
    [
      "/cosmos.bank.v1beta1.Query/SupplyOf",
      "/cosmos.bank.v1beta1.Query/TotalSupply",
      "/cosmos.bank.v1beta1.Query/DenomMetadata",
      "/cosmos.bank.v1beta1.Query/Balance",
      "/cosmos.base.tendermint.v1beta1.Service/GetLatestBlock",
      "/cosmos.base.tendermint.v1beta1.Service/GetBlockByHeight",
      "/cosmos.tx.v1beta1.Service/GetTxsEvent",
      "/cosmos.tx.v1beta1.Service/BroadcastTx",
      "/cosmos.tx.v1beta1.Service/GetTx",
      "/cosmos.tx.v1beta1.Service/GetBlockWithTxs",
    ].map((path) => [path, nothing]),
  ),
  () => 7,
  20_000,
);
const routes = new Routes(queries);
const reader = new JsonReader(types);

function found(verb: string, path: string) {
  const match = routes.match(verb, path);
  return typeof match === "object" ? match : undefined;
}

function methodOf(verb: string, path: string): string | undefined {
  return found(verb, path)?.served.method.name;
}

function read(verb: string, url: string, body?: string) {
  const [path = "", query = ""] = url.split("?");
  const match = found(verb, path);
  if (match === undefined) throw new Error(`no route ${url}`);
  return requestOf(match, reader, query, body);
}

describe("REST routes", () => {
  it("prefer fixed text to a field, and know the older forms", () => {
    const bank = "/cosmos/bank/v1beta1";
    expect(methodOf("GET", `${bank}/supply`)).toBe("TotalSupply");
    expect(methodOf("GET", `${bank}/supply/by_denom`)).toBe("SupplyOf");
    expect(methodOf("GET", `${bank}/supply/atoken`)).toBe("SupplyOf");
    expect(found("GET", `${bank}/supply/ibc/AB`)?.pathFields).toEqual([["denom", "ibc/AB"]]);
    expect(found("GET", `${bank}/denoms_metadata/factory/a/b`)?.pathFields).toEqual([
      ["denom", "factory/a/b"],
    ]);
    const blocks = "/cosmos/base/tendermint/v1beta1/blocks";
    expect(methodOf("GET", `${blocks}/latest`)).toBe("GetLatestBlock");
    expect(methodOf("GET", `${blocks}/5/`)).toBe("GetBlockByHeight");
    const txs = "/cosmos/tx/v1beta1/txs";
    expect(methodOf("GET", txs)).toBe("GetTxsEvent");
    expect(methodOf("POST", txs)).toBe("BroadcastTx");
    expect(methodOf("GET", `${txs}/AB`)).toBe("GetTx");
    expect(methodOf("GET", `${txs}/block/5`)).toBe("GetBlockWithTxs");
  });

  it("tell another verb from a path that is none", () => {
    expect(routes.match("POST", "/cosmos/bank/v1beta1/supply")).toBe("other verb");
    for (const path of ["/", "", "/cosmos", "/cosmos/bank/v1beta1/supply/", "//"]) {
      expect([path, methodOf("GET", path)]).toEqual([
        path,
        path.endsWith("supply/") ? "TotalSupply" : undefined,
      ]);
    }
    expect(() => routes.match("GET", "/cosmos/tx/v1beta1/txs/%zz")).toThrow(URIError);
  });

  it("read parameters of messages inside, and ignore those that nobody has", () => {
    const url = "/cosmos/bank/v1beta1/supply?pagination.limit=5&pagination.countTotal=true&x.y=1&z";
    expect(read("GET", url)).toEqual({ pagination: { limit: 5n, count_total: true } });
    const key = "/cosmos/bank/v1beta1/supply?pagination.key=AP%2B%2F&pagination.reverse=0";
    expect(read("GET", key)).toEqual({
      pagination: { key: Buffer.from([0, 255, 191]), reverse: false },
    });
    for (const wrong of ["limit=-1", "limit=a", "limit=1&pagination.limit=2", "reverse=maybe"]) {
      expect(() => read("GET", `/cosmos/bank/v1beta1/supply?pagination.${wrong}`)).toThrow(/field/);
    }
  });

  it("fold conditions that a raw & cut off back into the filter", () => {
    const txs = "/cosmos/tx/v1beta1/txs";
    const url = `${txs}?events=transfer.sender='addr1a'&transfer.amount='5atoken'&tx.height%3E=5`;
    expect(read("GET", `${url}&limit=2&order_by=ORDER_BY_DESC`)).toEqual({
      events: ["transfer.sender='addr1a'", "transfer.amount='5atoken'", "tx.height>=5"],
      limit: 2n,
      order_by: 2,
    });
    expect(read("GET", `${txs}?query=message.module%3D'bank'+AND+tx.height<9&foo=bar`)).toEqual({
      query: "message.module='bank' AND tx.height<9",
    });
    const more = read("GET", `${txs}?a.b='c=d'&events=e.f='%26'&g.h CONTAINS 'x'&fbclid=1.2`);
    expect(more).toEqual({ events: ["e.f='&'", "g.h CONTAINS 'x'", "a.b='c=d'"] });
    // Below a field of the request nothing is an event's: other APIs' names for pages.
    const pages = `pagination.page=2&pagination.per_page>=5&limit.x EXISTS&orderBy.y='1'`;
    const paged = read("GET", `${txs}?events=a.b='c'&${pages}&d.e='f'&pagination.limit=3`);
    expect(paged).toEqual({ events: ["a.b='c'", "d.e='f'"], pagination: { limit: 3n } });
  });

  it("read bodies strictly", () => {
    const txs = "/cosmos/tx/v1beta1/txs";
    const body = '{"tx_bytes":"AQI=","mode":"BROADCAST_MODE_SYNC"}';
    expect(read("POST", txs, body)).toEqual({ tx_bytes: Buffer.from([1, 2]), mode: 2 });
    expect(read("POST", txs, '{"txBytes":"AQI","mode":2}')).toMatchObject({ mode: 2 });
    for (const wrong of ["{", "[]", "1", '{"nope":1}', '{"tx_bytes":"?"}', '{"mode":"NO"}']) {
      expect(() => read("POST", txs, wrong)).toThrow();
    }
  });
});

describe("heights of requests", () => {
  it("are digits that are not beyond the newest", () => {
    expect(["", "0", undefined].map((text) => queries.heightOf(text))).toEqual([7, 7, 7]);
    expect(queries.heightOf("3")).toBe(3);
    for (const wrong of ["8", "-1", "1.5", "0x1", " 1", "9".repeat(40)]) {
      expect(() => queries.heightOf(wrong)).toThrow(/height/);
    }
  });
});
