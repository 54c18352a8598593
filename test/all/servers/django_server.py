"""An authorization server of django-oauth-toolkit on PostgreSQL. Arguments: its port, the port of PostgreSQL, the database."""

import hashlib
import json
import sys

import django
from django.conf import settings
from django.core.management import call_command
from django.http import JsonResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt

PORT, POSTGRES, DATABASE = sys.argv[1:4]
settings.configure(
    SECRET_KEY="only for tests",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": "127.0.0.1",
            "PORT": POSTGRES,
            "NAME": DATABASE,
            "USER": "postgres",
        }
    },
    OAUTH2_PROVIDER={
        "SCOPES": {"orders:read": "Read orders", "introspection": "Introspect tokens"},
        "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
    },
)
django.setup()

from oauth2_provider.models import get_access_token_model, get_application_model  # noqa: E402
from oauth2_provider.views import IntrospectTokenView  # noqa: E402

Application, AccessToken = get_application_model(), get_access_token_model()


class IntrospectWithIat(IntrospectTokenView):
    @staticmethod
    def get_token_response(token_value=None):
        response = IntrospectTokenView.get_token_response(token_value)
        data = json.loads(response.content)
        if not data.get("active"):
            return response
        token = AccessToken.objects.get(token_checksum=hashlib.sha256(token_value.encode()).hexdigest())
        return JsonResponse({**data, "iat": int(token.created.timestamp())})


@csrf_exempt
def change(request, client_id):
    """Creates an application, or changes members of it; a member `deleted` removes it."""
    values = json.loads(request.body)
    if values.pop("deleted", False):
        Application.objects.get(client_id=client_id).delete()
        return JsonResponse({})
    kind = {"client_type": "confidential", "authorization_grant_type": "client-credentials"}
    application, _ = Application.objects.get_or_create(client_id=client_id, defaults={**kind, **values})
    for name, value in values.items():
        setattr(application, name, value)
    application.save()
    return JsonResponse({})


urlpatterns = [
    path("clients/<client_id>", change),
    path("o/introspect-with-iat/", IntrospectWithIat.as_view()),
    path("o/", include("oauth2_provider.urls")),
]

call_command("migrate", verbosity=0)
call_command("runserver", f"127.0.0.1:{PORT}", use_reloader=False)
