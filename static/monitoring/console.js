// The console's script: what makes an open page live. Pages work without it; then they are as old as their loading.
import "./actions.js";
import "./ages.js";
import "./announce.js";
import "./details.js";
import "./filters.js";
import "./focus.js";
import "./keys.js";
import "./history.js";
import "./live.js";
import "./slider.js";
import "./subprocess.js";
