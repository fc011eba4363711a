/**
 * Settings of CometBFT 0.38's config.toml and of the SDK's app.toml that mean nothing here, so that
 * operators can keep their files. Where a value asks for something that this node does not do, and
 * an operator would rely on it, only the values that ask for nothing are taken.
 */
import type { NeutralValues } from "../../runtime/config/foreign-keys.js";

/** Of config.toml: taken, with a warning. */
export const COMET_INERT_KEYS: readonly string[] = [
  ...words("version proxy_app db_backend log_level log_format abci"),
  ...inSection(
    "rpc",
    `
      cors_allowed_methods cors_allowed_headers grpc_laddr grpc_max_open_connections unsafe
      max_open_connections max_subscription_clients max_subscriptions_per_client
      experimental_subscription_buffer_size experimental_websocket_write_buffer_size
      experimental_close_on_slow_client timeout_broadcast_tx_commit max_request_batch_size
      max_body_bytes max_header_bytes pprof_laddr
    `,
  ),
  ...inSection(
    "p2p",
    `
      addr_book_file addr_book_strict persistent_peers_max_dial_period flush_throttle_timeout
      max_packet_msg_payload_size send_rate recv_rate allow_duplicate_ip handshake_timeout
      dial_timeout upnp
    `,
  ),
  // The pool's bounds are in app.toml.
  ...inSection(
    "mempool",
    `
      recheck recheck_timeout wal_dir size max_txs_bytes cache_size keep-invalid-txs-in-cache
      max_tx_bytes max_batch_bytes version experimental_max_gossip_connections_to_persistent_peers
      experimental_max_gossip_connections_to_non_persistent_peers
    `,
  ),
  // Chunks lie in the home's data folder.
  "statesync.temp_dir",
  "blocksync.version",
  // Blocks come on the schedule of the genesis, empty ones too.
  ...inSection(
    "consensus",
    `
      timeout_commit skip_timeout_commit create_empty_blocks wal_file create_empty_blocks_interval
      peer_gossip_sleep_duration peer_query_maj23_sleep_duration
    `,
  ),
  "storage.discard_abci_responses",
  ...inSection("instrumentation", "max_open_connections namespace"),
];

/** Of config.toml: files lie where they lie, and nothing is left out that protects a key. */
export const COMET_NEUTRAL_VALUES: NeutralValues = {
  db_dir: ["data"],
  genesis_file: ["config/genesis.json"],
  priv_validator_key_file: ["config/priv_validator_key.json"],
  priv_validator_state_file: ["data/priv_validator_state.json"],
  priv_validator_laddr: [""],
  node_key_file: ["config/node_key.json"],
  filter_peers: [false],
  "rpc.tls_cert_file": [""],
  "rpc.tls_key_file": [""],
  "mempool.type": ["flood"],
  "mempool.broadcast": [true],
  "tx_index.indexer": ["kv"],
  "tx_index.psql-conn": [""],
};

/** Of app.toml: taken, with a warning. */
export const SDK_INERT_KEYS: readonly string[] = [
  ...words("query-gas-limit inter-block-cache index-events iavl-cache-size"),
  ...words("iavl-disable-fastnode app-db-backend"),
  ...inSection(
    "telemetry",
    `
      service-name enabled enable-hostname enable-hostname-label enable-service-label
      prometheus-retention-time global-labels metrics-sink statsd-addr datadog-hostname
    `,
  ),
  ...inSection("api", "rpc-read-timeout rpc-write-timeout"),
  ...inSection("grpc", "max-recv-msg-size max-send-msg-size skip-check-header"),
  ...inSection("grpc-web", "enable address enable-unsafe-cors"),
  ...inSection("streaming.abci", "keys plugin stop-node-on-err"),
  "mempool.max-txs",
  ...inSection(
    "evm",
    `
      tracer max-tx-gas-wanted cache-preimage evm-chain-id min-tip geth-metrics-address
    `,
  ),
  ...inSection(
    "evm.mempool",
    `
      price-limit price-bump account-slots global-slots account-queue global-queue lifetime
    `,
  ),
  ...inSection(
    "json-rpc",
    `
      allow-insecure-unlock evm-timeout txfee-cap filter-cap feehistory-cap http-timeout
      http-idle-timeout max-open-connections enable-indexer metrics-address
      fix-revert-gas-refund-height enable-profiling batch-response-max-size
    `,
  ),
];

/** Of app.toml. */
export const SDK_NEUTRAL_VALUES: NeutralValues = {
  "halt-time": [0n],
  "json-rpc.enable": [true],
  "json-rpc.allow-unprotected-txs": [false],
  "tls.certificate-path": [""],
  "tls.key-path": [""],
};

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

function inSection(section: string, keys: string): readonly string[] {
  return words(keys).map((key) => `${section}.${key}`);
}
