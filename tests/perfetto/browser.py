"""Debian's Chromium without a window, driven by selenium through Debian's own chromedriver (the same version, nothing downloaded)."""
import os
import shutil

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

WINDOW = (1600, 900)


def program(variable, *names):
    """Path of an installed program; a missing one fails the test that needs it, it never skips."""
    for name in (os.environ.get(variable), *names):
        path = name and shutil.which(name)
        if path:
            return path
    raise RuntimeError(f"none of {', '.join(names)} is installed (or named by {variable}): run `make deps`")


def start(width=WINDOW[0], height=WINDOW[1], timeout_s=120):
    """A new browser session. The caller quits it."""
    options = Options()
    options.binary_location = program("CHROMIUM", "chromium", "chromium-browser", "google-chrome")
    options.add_argument("--headless=new")
    options.add_argument("--disable-dev-shm-usage")
    options.add_argument("--disable-background-networking")
    options.add_argument("--disable-component-update")
    options.add_argument("--disable-extensions")
    options.add_argument("--disable-gpu")
    options.add_argument("--disable-software-rasterizer")
    options.add_argument("--no-first-run")
    options.add_argument("--force-color-profile=srgb")
    options.add_argument("--hide-scrollbars")
    options.add_argument(f"--window-size={width},{height}")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's sandbox refuses to run as root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("CUSTREAM_")}
    service = Service(executable_path=program("CHROMEDRIVER", "chromedriver"), env=environment)
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(timeout_s)
    driver.set_page_load_timeout(timeout_s)
    return driver
