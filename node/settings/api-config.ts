/** Sections [api] and [grpc] of app.toml, with the keys of the SDK: the interfaces of SDK chains. */
import { field } from "../../runtime/config/config.js";

/** Most requests a second that a bound can be set to. */
export const MAX_RATE = 1_000_000;

const MAX_OPEN_CONNECTIONS = field.integer({
  default: 1_000,
  min: 1,
  max: 100_000,
  help: "Most connections at once; more are refused.",
});

/** `[api]`: the REST interface. */
export const API_SECTION = {
  enable: field.boolean({ default: true, help: "Whether the REST interface is served." }),
  swagger: field.boolean({
    default: true,
    help: "Whether a page with all routes is served at /swagger.",
  }),
  address: field.listenAddress({
    default: "127.0.0.1:1317",
    scheme: "tcp://",
    help: "Where the REST interface listens.",
  }),
  "max-open-connections": MAX_OPEN_CONNECTIONS,
  "rpc-max-body-bytes": field.integer({
    default: 1_000_000,
    min: 1_024,
    max: 100_000_000,
    unit: "bytes",
    help: "Largest body of a request.",
  }),
  "enabled-unsafe-cors": field.boolean({
    default: false,
    help: "Whether pages of every web origin may call.",
  }),
  "cors-origins": field.list({
    default: [],
    help: "Origins of web pages that may call; * allows all. Empty sends no CORS headers.",
  }),
  "rate-limit": field.integer({
    default: 0,
    min: 0,
    max: MAX_RATE,
    unit: "requests per second",
    help: "Most requests of one address; more are answered with 429. 0 sets no bound.",
  }),
  "query-timeout-ms": field.integer({
    default: 10_000,
    min: 100,
    max: 600_000,
    unit: "ms",
    help: "Time after which a query over REST, gRPC or abci_query is given up.",
  }),
};

/** `[grpc]`: the same queries over gRPC. */
export const GRPC_SECTION = {
  enable: field.boolean({ default: true, help: "Whether gRPC is served." }),
  address: field.listenAddress({
    default: "127.0.0.1:9090",
    help: "Where gRPC listens, without TLS.",
  }),
  "max-open-connections": MAX_OPEN_CONNECTIONS,
  "rate-limit": field.integer({
    default: 0,
    min: 0,
    max: MAX_RATE,
    unit: "requests per second",
    help: "Most requests of one address; more get RESOURCE_EXHAUSTED. 0 sets no bound.",
  }),
};
