/** Entry of the image: a node with its Data and Construction APIs, or the offline API alone. */
import { runProcess } from "../runtime/process/lifecycle.js";
import { startMesh } from "./image/mesh-run.js";

runProcess({ name: "mesh", start: startMesh });
