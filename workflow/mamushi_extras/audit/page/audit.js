
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const n = data.ids.length;
  const at = (id) => document.getElementById(id);
  const number = (value) => value.toLocaleString("en");
  const WORDS = { y: "yes", n: "no", u: "unsure" };
  const NONE = "-";
  const KEY = "mamushi audit " + data.audit;

  let who = "";
  let given = []; // of each text y, n, u or NONE
  let place = 0;
  let unmask = false;

  // What this browser keeps; null where it keeps nothing, as some do of a page from a file.
  function read(key) {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  }

  function keep(key, value) {
    try {
      localStorage.setItem(key, value);
      return localStorage.getItem(key) === value;
    } catch {
      return false;
    }
  }

  const mine = () => KEY + " " + who;

  function recall() {
    const found = read(mine()) || "";
    given = Array.from({ length: n }, (_, i) => found[i] in WORDS ? found[i] : NONE);
  }

  function warn(kept) {
    at("saved").className = kept ? "" : "warning";
    at("saved").textContent = kept ? "Every answer is kept in this browser at once." :
      "This browser keeps nothing: save the answers as a file before you close the page.";
  }

  function begin(name) {
    who = name.trim();
    at("refused").textContent = who ? "" : "give a name: two people have one each";
    if (!who) return;
    recall();
    at("start").hidden = true;
    at("reading").hidden = false;
    warn(keep(KEY, who));
    toFirst();
    at("text").focus({ preventScroll: true });
  }

  function somebodyElse() {
    keep(KEY, "");
    who = "";
    at("reading").hidden = true;
    at("start").hidden = false;
    at("name").value = "";
    at("name").focus();
  }

  function plain(i) {
    return unmask && data.unmasked[i] || data.texts[i];
  }

  function draw() {
    const answered = given.reduce((sum, each) => sum + (each !== NONE), 0);
    at("status").textContent = who + ": text " + number(place + 1) + " of " + number(n) + ", " +
      number(answered) + " answered" +
      (answered === n ? ". That was all: save the answers as a file." : "");
    at("progress").max = n;
    at("progress").value = answered;
    at("text").textContent = plain(place);
    at("text").scrollTop = 0;
    for (const key in WORDS) {
      at("answer-" + key).setAttribute("aria-pressed", String(given[place] === key));
    }
    at("unmask").setAttribute("aria-pressed", String(unmask));
  }

  function go(where) {
    place = Math.min(n - 1, Math.max(0, where));
    draw();
  }

  function toFirst() {
    const first = given.indexOf(NONE);
    go(first < 0 ? n - 1 : first);
  }

  function answer(key) {
    given[place] = key;
    warn(keep(mine(), given.join("")));
    go(place + 1);
  }

  function save() {
    const answers = {};
    given.forEach((key, i) => {
      if (key !== NONE) answers[data.ids[i]] = WORDS[key];
    });
    const link = document.createElement("a");
    link.download = "answers-" + who.replace(/[^\p{L}\p{N}_.-]+/gu, "_") + ".json";
    const content = JSON.stringify({ audit: data.audit, annotator: who, answers }, null, 1);
    link.href = URL.createObjectURL(new Blob([content], { type: "application/json" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    at("saved").className = "";
    at("saved").textContent = number(Object.keys(answers).length) + " answers: " + link.download;
  }

  function toggle() {
    unmask = !unmask;
    draw();
  }

  const KEYS = {
    y: () => answer("y"), n: () => answer("n"), u: () => answer("u"), m: toggle, s: save,
    f: toFirst, ArrowLeft: () => go(place - 1), ArrowRight: () => go(place + 1),
    Backspace: () => go(place - 1),
  };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!who) {
      if (event.key === "Enter" && event.target === at("name")) begin(at("name").value);
      return;
    }
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!Object.hasOwn(KEYS, key)) return;
    event.preventDefault();
    // A key that is held answers one text, not all that follow.
    if (!event.repeat || key.startsWith("Arrow")) KEYS[key]();
  });
  at("begin").addEventListener("click", () => begin(at("name").value));
  for (const key in WORDS) at("answer-" + key).addEventListener("click", KEYS[key]);
  at("back").addEventListener("click", KEYS.ArrowLeft);
  at("on").addEventListener("click", KEYS.ArrowRight);
  at("first").addEventListener("click", toFirst);
  at("unmask").addEventListener("click", toggle);
  at("save").addEventListener("click", save);
  at("other").addEventListener("click", somebodyElse);
  // The same page in another window.
  addEventListener("storage", (event) => {
    if (!who || event.key !== mine()) return;
    recall();
    draw();
  });

  if (read(KEY)) begin(read(KEY));
  else at("name").focus();
})();
