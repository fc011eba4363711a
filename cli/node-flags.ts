/**
 * How Node runs a node. What a block is made of lives for some seconds and dies; with V8's usual
 * young generation (16 MiB) most of it is copied again and again before, which costs a fifth of
 * the process. `npm run causeway` has the same in package.json; a test compares the two.
 */
export const NODE_FLAGS: readonly string[] = ["--max-semi-space-size=32"];
